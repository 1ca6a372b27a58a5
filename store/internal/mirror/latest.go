package mirror

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/portico-platform/portico/store/internal/contact"
)

// readTimeout bounds one read of etcd's revision.
const readTimeout = 10 * time.Second

// latest shares reads of etcd's newest revision. One read is in flight at a time. Callers
// that arrive during it share the next one, because a linearizable read must start after
// the call.
type latest struct {
	read func(ctx context.Context) (int64, error)

	mu      sync.Mutex
	next    *reading // the read that has not started; nil if no caller waits for one
	running bool
}

// reading is one read and its result.
type reading struct {
	done     chan struct{}
	revision int64
	err      error
}

func (l *latest) get(ctx context.Context) (int64, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &reading{done: make(chan struct{})}
	}
	r := l.next
	if !l.running {
		l.running = true
		// Not bound to ctx: other callers may share the read.
		go l.run(context.WithoutCancel(ctx))
	}
	l.mu.Unlock()
	select {
	case <-r.done:
		return r.revision, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run reads until no caller waits.
func (l *latest) run(ctx context.Context) {
	for {
		l.mu.Lock()
		r := l.next
		l.next = nil
		l.running = r != nil
		l.mu.Unlock()
		if r == nil {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, readTimeout)
		r.revision, r.err = l.read(bounded)
		cancel()
		close(r.done)
	}
}

// readRevision reads the revision together with the epoch, so that every most-recent
// read detects a restored etcd.
func (m *Mirror) readRevision(ctx context.Context) (int64, error) {
	ctx, cancel := m.contact.Bound(ctx)
	defer cancel()
	e, revision, err := m.keeper.Read(ctx)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), contact.ErrAway):
		return 0, contact.ErrAway
	case err != nil:
		return 0, err
	}
	m.enter(e)
	return revision, nil
}
