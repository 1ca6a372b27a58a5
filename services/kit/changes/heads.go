package changes

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
)

// Heads follows some resource types and knows the revision of their newest change, for a
// service that keeps results which depend on them. It holds no objects.
type Heads struct {
	source Source
	store  services.Reader
	types  []head
	seen   []Observer

	mu    sync.Mutex
	moved chan struct{} // closed at the next move of a head; nil if nobody waits
}

// Observer is called with the changes of one type that end at a revision, oldest first. A call
// without changes means that any object of the type may have changed through the revision.
// It must not block.
type Observer func(revision int64, list []services.Change)

// head is the newest change of one type: unknown while the type is not followed.
type head struct {
	of       resource.GroupResource
	revision atomic.Int64
}

const unknown = math.MaxInt64

// NewHeads returns heads that are unknown until it runs.
func NewHeads(source Source, store services.Reader, types ...resource.GroupResource) *Heads {
	h := &Heads{source: source, store: store, types: make([]head, len(types))}
	for i, gr := range types {
		h.types[i].of = gr
		h.types[i].revision.Store(unknown)
	}
	return h
}

// Observe adds an observer. It must be called before the loops run.
func (h *Heads) Observe(o Observer) { h.seen = append(h.seen, o) }

// Loops returns what keeps the heads up to date, each until its context ends.
func (h *Heads) Loops() (loops []func(context.Context) error) {
	for i := range h.types {
		loops = append(loops, func(ctx context.Context) error {
			for pauses := retry.NewBackoff(minBackoff, maxBackoff); ctx.Err() == nil; {
				if h.types[i].follow(ctx, h) {
					pauses.Reset()
				}
				h.types[i].revision.Store(unknown)
				h.wake()
				pauses.Pause(ctx)
			}
			return nil
		})
	}
	return loops
}

// Unchanged reports whether no object of the types has changed after a revision, as far as
// this process has received. It is false while it cannot receive changes.
func (h *Heads) Unchanged(since int64) bool {
	if since <= 0 {
		return false
	}
	for i := range h.types {
		if h.types[i].revision.Load() > since {
			return false
		}
	}
	return true
}

// AwaitChange returns when Unchanged no longer holds, or with the error of ctx.
func (h *Heads) AwaitChange(ctx context.Context, since int64) error {
	for {
		moved := h.nextMove() // before the look, so that none is missed
		if !h.Unchanged(since) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextMove returns what the next move of a head closes.
func (h *Heads) nextMove() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.moved == nil {
		h.moved = make(chan struct{})
	}
	return h.moved
}

// wake ends the waiting for a move.
func (h *Heads) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.moved != nil {
		close(h.moved)
		h.moved = nil
	}
}

// Newest returns the revision of the newest change of an object of the types, as far as this
// process has received; 0 while it cannot receive changes.
func (h *Heads) Newest() (newest int64) {
	for i := range h.types {
		revision := h.types[i].revision.Load()
		if revision == unknown {
			return 0
		}
		newest = max(newest, revision)
	}
	return newest
}

// follow begins at the present, as if every object had changed now, and returns when the
// sequence breaks: true if it had begun.
func (t *head) follow(ctx context.Context, h *Heads) bool {
	now, err := h.store.Revision(ctx, t.of)
	if err != nil {
		return false
	}
	stream, err := h.source.Follow(ctx, t.of, now)
	if err != nil {
		return false
	}
	defer stream.Close()
	t.set(h, now, nil)
	for {
		batch, err := stream.Next(ctx)
		if err != nil {
			return true
		}
		if n := len(batch.Changes); n > 0 {
			t.set(h, batch.Changes[n-1].Object.Revision, batch.Changes)
		}
	}
}

// set sets the head first, so that a notified observer finds it.
func (t *head) set(h *Heads, revision int64, list []services.Change) {
	t.revision.Store(revision)
	h.wake()
	for _, see := range h.seen {
		see(revision, list)
	}
}
