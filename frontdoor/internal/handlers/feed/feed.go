// Package feed turns the changes of a resource type into watches: one feed per resource
// type in use, a ring of recent changes shared by all its watchers, and only a cursor
// per watcher. A slow watcher lags and catches up without delaying others. A watcher
// that falls behind the ring is served from the hub; one that falls behind the hub's
// history gets 410.
//
// It implements order, selection and wake-ups. The caller encodes the events; the encoded
// bytes are cached with the change. It serves "Watch procedure" and "Watch events" of the
// specification.
package feed

import (
	"context"
	"errors"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
)

// ErrEnded is what a watcher gets after the last change of a type that is no longer served.
var ErrEnded = errors.New("the type is no longer served")

// feed is the ring of one resource type.
type feed struct {
	config   Config
	resource resource.GroupResource
	started  chan struct{} // closed when state is first set
	state    atomic.Pointer[ring]
	// settled is the revision through which watchers have been woken.
	settled atomic.Int64
	index   *index
	limit   atomic.Int64 // of the ring, in bytes
	use     use
	// until is the revision of the last change of the type; 0 while it is served. ended is closed after
	// the last addition.
	until atomic.Int64
	ended chan struct{}
}

func newFeed(config Config, gr resource.GroupResource) *feed {
	f := &feed{config: config, resource: gr, started: make(chan struct{}), ended: make(chan struct{}), index: newIndex()}
	f.limit.Store(int64(config.Bytes))
	return f
}

func (f *feed) bytes() int64 {
	if r := f.state.Load(); r != nil {
		return int64(r.bytes)
	}
	return 0
}

// ring holds every change in (floor, through], oldest first. It is replaced as a whole
// and its entries never change, so readers need no lock.
type ring struct {
	entries        []*Entry
	bytes          int
	floor, through int64
	start          int64  // the revision after which it has received every change
	epoch          string // of the revisions; empty until the first batch
}

// after returns the entries after a revision, which must not be below the floor.
func (r *ring) after(revision int64) []*Entry {
	i := sort.Search(len(r.entries), func(i int) bool { return r.entries[i].Object.Revision > revision })
	return r.entries[i:]
}

// over reports whether the ring has every change of a type that is no longer served.
func (f *feed) over() bool {
	until, r := f.until.Load(), f.state.Load()
	return until > 0 && r != nil && r.through >= until
}

func (f *feed) hasEnded() bool {
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

// run keeps the ring filled. When the sequence breaks it restarts from the present:
// watchers then bridge the gap from the hub's history, or get 410.
func (f *feed) run(ctx context.Context) {
	defer func() {
		close(f.ended)
		f.index.wakeAll(f.settled.Load() + 1)
	}()
	for pauses := retry.NewBackoff(10*time.Millisecond, time.Second); ctx.Err() == nil; {
		head, err := f.config.Head(ctx, f.resource)
		if err == nil {
			f.reset(head)
			pauses.Reset()
			f.follow(ctx, head)
		}
		if f.over() {
			return
		}
		pauses.Pause(ctx)
	}
}

// follow adds changes to the ring until the sequence breaks.
func (f *feed) follow(ctx context.Context, head int64) {
	stream, err := f.config.Source.Follow(ctx, f.resource, head)
	if err != nil {
		return
	}
	defer stream.Close()
	for !f.over() {
		batch, err := stream.Next(ctx)
		if err != nil {
			return
		}
		f.append(batch)
	}
}

func (f *feed) reset(head int64) {
	first := f.state.Swap(&ring{floor: head, start: head, through: head}) == nil
	f.settled.Store(head) // not a revision of an earlier epoch
	if first {
		close(f.started)
		return
	}
	f.index.wakeAll(head)
}

// append publishes a batch: first the ring, then the wake-ups.
func (f *feed) append(batch changes.Batch) {
	old := f.state.Load()
	next := &ring{entries: old.entries, bytes: old.bytes, floor: old.floor, start: old.start, through: max(batch.Through, old.through), epoch: batch.Epoch}
	now := time.Now()
	for _, c := range batch.Changes {
		e := &Entry{Change: c, at: now}
		next.entries = append(next.entries, e)
		next.bytes += e.size()
	}
	next.trim(int(f.limit.Load()), now.Add(-f.config.Age))
	f.state.Store(next)
	for i := range batch.Changes {
		f.index.wake(&batch.Changes[i])
	}
	f.settled.Store(next.through)
	if next.epoch != old.epoch {
		f.index.wakeAll(next.through) // watchers of another epoch must end
	}
}

// trim drops the oldest entries once the ring exceeds its bounds by a quarter. It
// copies the rest, so that the dropped entries can be collected.
func (r *ring) trim(bytes int, oldest time.Time) {
	if len(r.entries) == 0 || r.bytes < bytes+bytes/4 && r.entries[0].at.After(oldest) {
		return
	}
	n := 0
	for n < len(r.entries) && (r.bytes > bytes || r.entries[n].at.Before(oldest)) {
		r.bytes -= r.entries[n].size()
		r.floor = r.entries[n].Object.Revision
		n++
	}
	r.entries = append(make([]*Entry, 0, len(r.entries)-n+64), r.entries[n:]...)
}

// Entry is a change in the ring, with its encoded forms.
type Entry struct {
	services.Change
	at time.Time
	// private is true if only one watcher has the entry, which needs each form once.
	private bool

	mu      sync.Mutex
	encoded map[string][]byte
}

// Encoded returns the change in this form. The first call for a form runs encode; later
// ones return the same bytes, which are read-only. Those of an entry that only one watcher has are not kept.
func (e *Entry) Encoded(form string, encode func() ([]byte, error)) ([]byte, error) {
	if e.private {
		return encode()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.encoded[form]; ok {
		return b, nil
	}
	b, err := encode()
	if err != nil {
		return nil, err
	}
	if e.encoded == nil {
		e.encoded = map[string][]byte{}
	}
	e.encoded[form] = b
	return b, nil
}

// size is the number of bytes that the entry counts in the ring: its object, and as much
// for its encoded event.
func (e *Entry) size() int { return 2*(len(e.Object.JSON)+len(e.OldJSON)) + 512 }
