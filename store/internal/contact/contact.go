// Package contact monitors whether etcd responds. Twice a second it sends a linearizable read of one key. etcd
// is "away" (unavailable) when it has responded neither to that nor to any other request for patience; it is
// back with its next response.
//
// Callers stop waiting for etcd while it is away: the store rejects requests that have not
// been sent, and determines the outcome of writes that have. The package serves
// "Persistence" of the specification.
package contact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/monotonic"
	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// patience is how long etcd may not respond. It is longer than a leader election.
	patience = 2 * time.Second
	// every is the pause between a response and the next request, and soon the pause
	// after a failed request.
	every = 500 * time.Millisecond
	soon  = 100 * time.Millisecond
)

// ErrAway is the error of requests that need etcd while it is unavailable.
var ErrAway = errors.New("etcd has not responded for " + patience.String())

// Config configures a Contact.
type Config struct {
	// KV reads Key, from another member of etcd if one does not respond.
	KV  clientv3.KV
	Key string
	Log *slog.Logger
}

// Contact monitors etcd while Run runs. Before that etcd counts as available.
type Contact struct {
	config Config
	state  atomic.Pointer[state]
	lost   atomic.Int64
	heard  atomic.Int64 // when etcd last responded, as monotonic.Now
	// pending receives the result of the request in flight; nil if there is none. Only
	// Run uses it.
	pending chan error
}

// state is a period in which etcd is available, and the outage that ends it.
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

// Away returns a channel that is closed when etcd is away. It stays closed when etcd is
// back: call Away for each wait.
func (c *Contact) Away() <-chan struct{} { return c.state.Load().there.Done() }

// Bound returns a context that also ends, with the cause ErrAway, when etcd is away. The
// caller must cancel it.
func (c *Contact) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.state.Load().there, func() { cancel(ErrAway) })
	return bound, func() {
		stop()
		cancel(nil)
	}
}

// Heard records that etcd has responded to a request as only a cluster with a leader does.
func (c *Contact) Heard() { c.heard.Store(monotonic.Now()) }

// Run monitors etcd until ctx ends.
func (c *Contact) Run(ctx context.Context) {
	c.Heard()
	for ctx.Err() == nil {
		err := c.probe(ctx)
		wait := soon
		switch {
		case err == nil:
			c.Heard()
			if wait = every; c.Err() != nil {
				c.found()
				c.config.Log.Info("etcd responds again")
			}
		case ctx.Err() == nil && c.Err() == nil && c.silent() >= patience:
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

// probe returns an error if the request fails, or if etcd has not responded to any request for
// patience. At most one request is in flight: an etcd in this process may hang and ignore ctx.
func (c *Contact) probe(ctx context.Context) error {
	if c.pending == nil {
		answer := make(chan error, 1)
		c.pending = answer
		go func() {
			ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrAway)
			defer cancel()
			_, err := c.config.KV.Get(ctx, c.config.Key, clientv3.WithCountOnly())
			answer <- err
		}()
	}
	left := patience
	for {
		if silent := c.silent(); silent < patience {
			left = patience - silent
		}
		due := time.Now().Add(left)
		timer := time.NewTimer(left)
		var err error
		select {
		case err = <-c.pending:
			c.pending = nil
			if err == nil {
				timer.Stop()
				return nil
			}
			err = fmt.Errorf("reading from etcd: %w", err)
		case <-timer.C:
			err = ErrAway
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		timer.Stop()
		if time.Since(due) > patience {
			c.Heard() // this process itself was paused
		}
		if c.pending == nil || ctx.Err() != nil || c.silent() >= patience {
			return err
		}
	}
}

// silent returns how long etcd has not responded.
func (c *Contact) silent() time.Duration { return monotonic.Since(c.heard.Load()) }
