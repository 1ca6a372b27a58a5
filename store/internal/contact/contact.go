// Package contact knows whether etcd answers. It asks etcd twice a second for a
// linearizable read of one key. etcd is away when it has not answered for patience;
// it is back with its next answer.
//
// It decides when requests stop waiting for etcd. It never decides what happens to
// them: requests that have not been sent are refused, and the outcome of a write that
// has been sent is searched for. It serves "Persistence" of the specification.
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
	// patience is how long etcd may be silent. The election of a leader takes less.
	patience = 2 * time.Second
	// every is the pause between an answer and the next question, and soon the pause
	// after a question that failed.
	every = 500 * time.Millisecond
	soon  = 100 * time.Millisecond
)

// ErrAway is the error of everything that does not wait for etcd because it is away.
var ErrAway = errors.New("etcd has not answered for " + patience.String())

// Config is what a Contact is made of.
type Config struct {
	// KV is asked, for Key.
	KV  clientv3.KV
	Key string
	Log *slog.Logger
}

// Contact watches over one etcd. Run keeps it current; until then etcd is there.
type Contact struct {
	config Config
	state  atomic.Pointer[state]
	lost   atomic.Int64
	// pending receives the answer of a question that has not come back; nil when there
	// is none. It belongs to Run.
	pending chan error
}

// state is a time during which etcd is there, or away.
type state struct {
	there context.Context // ends with ErrAway when etcd is away
	lose  context.CancelCauseFunc
}

// New returns a Contact to an etcd that is there.
func New(c Config) *Contact {
	contact := &Contact{config: c}
	contact.found()
	return contact
}

// Err returns ErrAway while etcd is away, and nil while it is there.
func (c *Contact) Err() error { return context.Cause(c.state.Load().there) }

// Losses returns how many times etcd was away.
func (c *Contact) Losses() int64 { return c.lost.Load() }

// Away returns a channel that is closed while etcd is away. It belongs to the moment of
// the call: it is not opened again when etcd is back.
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

// Run asks etcd until ctx ends.
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
				c.config.Log.Info("etcd answers again")
			}
		case now.Sub(asked) > 2*patience:
			answered = now // it is this process that was paused
		case ctx.Err() == nil && c.Err() == nil && now.Sub(answered) >= patience:
			c.lost.Add(1)
			c.config.Log.Warn("etcd does not answer, requests that need it are refused", "error", err)
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

// ask returns an error when etcd has not answered in time. One question is under way
// at a time: an etcd in this process may hang without looking at ctx.
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
			return fmt.Errorf("asking etcd: %w", err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
