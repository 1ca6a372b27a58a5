// Package budget bounds the work of one walk over an object: the walk ends when the
// request's deadline has passed or its client has disconnected, and the bytes that it adds
// to the object are limited. Counter counts the requests that exceeded a limit. It knows
// nothing about objects. It serves "Errors" of the specification.
package budget

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
)

const (
	// maxAdded limits the bytes that defaults add to one object: the maximum size of a
	// request body. An object of that size is larger than etcd accepts.
	maxAdded = 3 << 20
	// stride is the number of steps between checks of the context.
	stride = 1024
)

// Budget is the budget of one walk. A nil Budget is unlimited. It must not be used
// concurrently.
type Budget struct {
	ctx   context.Context //nolint:containedctx // a Budget is used for one walk only
	steps int
	added int
	err   error
}

// New returns the budget of a walk that ends with ctx.
func New(ctx context.Context) *Budget { return &Budget{ctx: ctx} }

// Over counts a step and reports whether the request is over: the walk must then end, and
// Err returns the reason.
func (b *Budget) Over() bool {
	if b == nil {
		return false
	}
	if b.steps++; b.steps%stride == 0 && b.ctx.Err() != nil {
		b.err = limit.Exceeded(limit.Time, services.AsStatus(b.ctx.Err()))
		return true
	}
	return b.err != nil && b.ctx.Err() != nil
}

// Add counts the bytes of a default. It reports whether the limit allows them: if not, the
// default must be left out, and Err returns the reason.
func (b *Budget) Add(bytes int) bool {
	if b == nil {
		return true
	}
	if b.added += bytes; b.added <= maxAdded {
		return true
	}
	if b.err == nil {
		b.err = limit.Exceeded(limit.Defaults, services.TooLarge("The allowed maximum size of an object's default values is %d bytes", maxAdded))
	}
	return false
}

// Err returns the Status of an exceeded budget: RequestEntityTooLarge (413), or Timeout
// (504) when the request is over. It returns nil if no limit was exceeded.
func (b *Budget) Err() error {
	if b == nil {
		return nil
	}
	return b.err
}
