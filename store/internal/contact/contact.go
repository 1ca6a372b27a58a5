// Package contact monitors whether etcd responds. Twice a second it sends a
// linearizable read of one key. etcd is away (unavailable) when it has not responded
// for patience; it is back with its next response.
//
// It decides when requests stop waiting for etcd, not what happens to them: requests
// that have not been sent are refused, and the outcome of a write that has been sent is
// searched for. It serves "Persistence" of the specification.
package contact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// patience is how long etcd may be silent: longer than a leader election.
	patience = 2 * time.Second
	// every is the pause between a response and the next request, and soon the pause
	// after a failed request.
	every = 500 * time.Millisecond
	soon  = 100 * time.Millisecond
)

// ErrAway is the error of requests that do not wait for an unavailable etcd.
var ErrAway = errors.New("etcd has not responded for " + patience.String())

// Config configures a Contact.
type Config struct {
	// KV reads Key.
	KV  clientv3.KV
	Key string
	Log *slog.Logger
}

// Contact monitors one etcd. Run keeps it current; until then etcd counts as available.
type Contact struct {
	config Config
	state  atomic.Pointer[state]
	lost   atomic.Int64
	// pending receives the result of a request in progress; nil if there is none. Only
	// Run uses it.
	pending chan error
}

// state is a period during which etcd is available, or away.
type state struct {
	there context.Context // ends with ErrAway when etcd is away
	lose  context.CancelCauseFunc
}

// New returns a Contact that assumes etcd is available.
func New(c Config) *Contact {
	contact := &Contact{config: c}
	contact.found()
	return contact
}

// Err returns ErrAway while etcd is away, nil otherwise.
func (c *Contact) Err() error { return context.Cause(c.state.Load().there) }

// Losses returns how many times etcd has become unavailable.
func (c *Contact) Losses() int64 { return c.lost.Load() }

// Away returns a channel that is closed while etcd is away. It is for the state at the
// call and does not change when etcd is back.
func (c *Contact) Away() <-chan struct{} { return c.state.Load().there.Done() }

// Bound returns a context that also ends, with the cause ErrAway, when etcd is away. It
// must be canceled.
func (c *Contact) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.state.Load().there, func() { cancel(ErrAway) })
	return bound, func() {
		stop()
		cancel(nil)
	}
}

// Run monitors etcd until ctx ends.
func (c *Contact) Run(ctx context.Context) {
	answered := time.Now()
	for ctx.Err() == nil {
		asked := time.Now()
		err := c.ask(ctx)
		now := time.Now()
		wait := soon
		switch {
		case err == nil:
			answered, wait = now, every
			if c.Err() != nil {
				c.found()
				c.config.Log.Info("etcd responds again")
			}
		case now.Sub(asked) > 2*patience:
			answered = now // this process itself was paused
		case ctx.Err() == nil && c.Err() == nil && now.Sub(answered) >= patience:
			c.lost.Add(1)
			c.config.Log.Warn("etcd does not respond, requests that need it are refused", "error", err)
			c.state.Load().lose(ErrAway)
		}
		retry.Pause(ctx, wait)
	}
}

func (c *Contact) found() {
	s := &state{}
	s.there, s.lose = context.WithCancelCause(context.Background())
	c.state.Store(s)
}

// ask returns an error if etcd has not responded in time. Only one request is in
// progress at a time: an etcd in this process may hang and ignore ctx.
func (c *Contact) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrAway)
	defer cancel()
	if c.pending == nil {
		answer := make(chan error, 1)
		c.pending = answer
		go func() {
			_, err := c.config.KV.Get(ctx, c.config.Key, clientv3.WithCountOnly())
			answer <- err
		}()
	}
	select {
	case err := <-c.pending:
		c.pending = nil
		if err != nil {
			return fmt.Errorf("reading from etcd: %w", err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
