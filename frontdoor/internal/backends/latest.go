package backends

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// headsTimeout bounds one call of the store for heads.
const headsTimeout = 10 * time.Second

// latest shares calls of the store for heads. One call is in flight at a time. Readers that
// arrive during it share the next one, because a linearizable read must start after they do.
type latest struct {
	read func(ctx context.Context, types []resource.GroupResource) (services.Heads, error)

	mu      sync.Mutex
	next    *reading // the call that has not started; nil if no reader waits for one
	running bool
}

// reading is one call and its result.
type reading struct {
	types []resource.GroupResource
	done  chan struct{}
	heads services.Heads
	err   error
}

// head returns the newest revision of etcd, and the head of a type, as of a moment after the
// call of head.
func (l *latest) head(ctx context.Context, gr resource.GroupResource) (services.Heads, int64, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &reading{done: make(chan struct{})}
	}
	r := l.next
	at := slices.Index(r.types, gr)
	if at < 0 {
		at = len(r.types)
		r.types = append(r.types, gr)
	}
	if !l.running {
		l.running = true
		go l.run(context.WithoutCancel(ctx)) // not bound to ctx: other readers may share the call
	}
	l.mu.Unlock()
	select {
	case <-r.done:
		if r.err != nil {
			return services.Heads{}, 0, r.err
		}
		return r.heads, r.heads.Types[at], nil
	case <-ctx.Done():
		return services.Heads{}, 0, ctx.Err()
	}
}

// run calls until no reader waits.
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
		bounded, cancel := context.WithTimeout(ctx, headsTimeout)
		r.heads, r.err = l.read(bounded, r.types)
		cancel()
		close(r.done)
	}
}
