// Package contact monitors whether etcd responds. Twice a second it sends a linearizable read of one key. etcd
// is "away" (unavailable) when it has responded neither to that nor to any other request for patience; it is
// back with its next response. Time in which this process had no processor does not count as silence: an embedded etcd
// had none either, and the answers of another one may have arrived.
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
	// step is how often silence is measured. A step that takes longer counts twice that at most.
	step = 50 * time.Millisecond
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
	silence silence
}

// silence is how long etcd has not responded, without the time in which this process was late. Only Run uses it.
type silence struct {
	heard, at int64 // the response since which it is measured, and the last measurement, as monotonic.Now
	took      time.Duration
}

// lasts adds what has passed since the last call, and returns the silence after the newest response.
func (s *silence) lasts(heard, now int64) time.Duration {
	if heard != s.heard {
		s.heard, s.took = heard, min(time.Duration(now-heard), every)
	} else {
		s.took += min(time.Duration(now-s.at), 2*step)
	}
	s.at = now
	return s.took
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
		case ctx.Err() == nil && c.Err() == nil && c.silence.took >= patience:
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
	c.silence.lasts(c.heard.Load(), monotonic.Now())
	steps := time.NewTicker(step)
	defer steps.Stop()
	for {
		select {
		case err := <-c.pending:
			c.pending = nil
			c.silence.lasts(c.heard.Load(), monotonic.Now())
			if err != nil {
				err = fmt.Errorf("reading from etcd: %w", err)
			}
			return err
		case <-steps.C:
			if c.silence.lasts(c.heard.Load(), monotonic.Now()) >= patience {
				return ErrAway
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
