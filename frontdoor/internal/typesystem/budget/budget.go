// Package budget bounds what one walk over an object may take: it ends when the request
// is over, because its time is or because the client has left, and limits what the walk
// adds to the object. It counts the requests that such limits have ended. It knows nothing
// of objects. It serves "Errors" of the
// specification.
package budget

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
)

const (
	// maxAdded is the limit on what defaults add to one object, in bytes: as much as a
	// client may send. An object of that size is beyond what etcd takes.
	maxAdded = 3 << 20
	// stride is how many steps are taken before the context is asked again.
	stride = 1024
)

// Budget is that of one walk. A nil Budget is unlimited. It must not be used
// concurrently.
type Budget struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the walk
	steps int
	added int
	err   error
}

// New returns the budget of a walk that ends with ctx.
func New(ctx context.Context) *Budget { return &Budget{ctx: ctx} }

// Over counts a step and reports whether the request is over: the walk then ends, and
// Err says why.
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

// Add takes the bytes of a default from the budget. It reports false when there are not
// enough left: the default is then left out, and Err says why.
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

// Err returns the Status of a budget that is used up: RequestEntityTooLarge (413), or
// Timeout (504) when the time of the request is over; nil while there is some left.
func (b *Budget) Err() error {
	if b == nil {
		return nil
	}
	return b.err
}
