package feed

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
)

// Selection is what a watcher selects.
type Selection struct {
	GroupResource resource.GroupResource
	Namespace     string // empty: all namespaces
	// Namespaces are the only ones selected, in order, if the pointer is set.
	Namespaces *[]string
	Selector   resource.Selector
	// After is the revision through which the watcher has seen everything.
	After int64
}

// Event is a change as one watcher sees it: an object that begins to match its selector
// is Added, one that no longer does is Deleted.
type Event struct {
	Type  services.ChangeType
	Entry *Entry
}

// Object returns the object of the event: after the change, or, if that took it out of
// the selection, before it.
func (e Event) Object() services.Object {
	object := e.Entry.Object
	if e.Type == services.Deleted && e.Entry.OldJSON != nil {
		object.JSON = e.Entry.OldJSON
		object.UID = "" // so that caches by UID and revision do not return the state after the change
	}
	return object
}

// batchEvents and batchBytes bound one batch of events, so that a slow watcher holds
// little memory.
const (
	batchEvents = 1000
	batchBytes  = 256 << 10
)

// Watcher is one watch: a cursor into a feed. It must be used by one goroutine.
type Watcher struct {
	feed      *feed
	selection Selection
	epoch     string // of the position; empty until known from the feed
	position  int64  // everything selected through here has been delivered
	wake      chan struct{}
	group     *group // nil if closed; set by the index
	at        int    // in its group
	// pending is the oldest revision after position that may be selected; 0 if none.
	// The feed sets it, the watcher clears it.
	pending atomic.Int64
	pages   pages
	release func() // called once; nil for none
}

// Close ends the watch.
func (w *Watcher) Close() {
	w.feed.index.remove(w)
	if w.release != nil {
		w.release()
		w.release = nil
	}
}

// Position returns the revision through which everything selected has been delivered.
// It advances also while nothing is selected.
func (w *Watcher) Position() int64 {
	settled := w.feed.settled.Load()
	r := w.feed.state.Load()
	if w.pending.Load() == 0 && settled > w.position && w.position >= r.start && w.continues(r.epoch) == nil {
		w.position = settled
	}
	return w.position
}

// Next returns the next selected events in order, at least one. It waits for them until
// ctx ends. It returns Expired (410) if the watcher has fallen behind the history, and ErrEnded after
// the last change of a type that is no longer served.
func (w *Watcher) Next(ctx context.Context) ([]Event, error) {
	for {
		ended := w.feed.hasEnded() // before the ring is read
		events, err := w.advance(ctx)
		if err != nil || len(events) > 0 {
			return events, err
		}
		if ended && w.pending.Load() == 0 && w.feed.until.Load() > 0 {
			return nil, ErrEnded
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// advance moves the cursor over the available changes and returns the selected ones.
func (w *Watcher) advance(ctx context.Context) ([]Event, error) {
	first := w.pending.Swap(0)
	r := w.feed.state.Load()
	if err := w.continues(r.epoch); err != nil {
		return nil, err
	}
	// No change since the ring began is selected before the first that woke the watcher.
	if first-1 > w.position && w.position >= r.start {
		w.position = first - 1
	}
	if w.position < r.floor {
		return w.bridge(ctx)
	}
	events, through := w.take(r.after(w.position), r.through)
	w.position = max(w.position, through)
	if through < r.through {
		w.signal(through + 1) // there are more
	}
	return events, nil
}

// continues returns Expired (410) if the epoch is known and differs from the watcher's.
func (w *Watcher) continues(epoch string) error {
	if w.epoch == "" {
		w.epoch = epoch
	}
	if epoch != "" && epoch != w.epoch {
		return services.Expired("the store was restored: its history does not continue the one that was watched")
	}
	return nil
}

// bridge reads a page of history from the hub, for a watcher that has fallen behind the
// ring. Replay retries while the hub is unavailable, so that the watch does not end.
func (w *Watcher) bridge(ctx context.Context) ([]Event, error) {
	w.signal(w.position + 1) // there is more after this page, or all of it if this fails
	replay, err := w.feed.config.Source.Replay(ctx, services.ReplayRequest{
		GroupResource: w.feed.resource, After: w.position, Limit: w.pages.limit(time.Now())})
	if err != nil {
		return nil, err
	}
	if err := w.continues(replay.Epoch); err != nil {
		return nil, err
	}
	entries := make([]*Entry, len(replay.Changes))
	for i := range replay.Changes {
		entries[i] = &Entry{Change: replay.Changes[i], private: true}
	}
	if replay.Through <= w.position {
		// The hub is behind the ring, whose first revision comes from etcd. Give it time
		// instead of polling without a pause.
		if !retry.Pause(ctx, w.pages.pause()) {
			return nil, ctx.Err()
		}
	}
	events, taken := w.take(entries, replay.Through)
	w.position = max(w.position, taken)
	selected := 0
	for _, e := range events {
		selected += len(e.Entry.Object.JSON) + len(e.Entry.OldJSON)
	}
	w.pages.took(time.Now(), replay.Changes, selected)
	return events, nil
}

// take selects from entries until a batch is full. It returns the revision through
// which the batch is complete: end if all were examined.
func (w *Watcher) take(entries []*Entry, end int64) (events []Event, through int64) {
	bytes := 0
	for _, e := range entries {
		if len(events) >= batchEvents || bytes >= batchBytes {
			return events, events[len(events)-1].Entry.Object.Revision
		}
		if t := w.selection.eventType(&e.Change); t != 0 {
			events = append(events, Event{Type: t, Entry: e})
			bytes += len(e.Object.JSON) + len(e.OldJSON)
		}
	}
	return events, end
}

// eventType returns the event of a change for this selection; 0 if none.
func (s *Selection) eventType(c *services.Change) services.ChangeType {
	if s.Namespace != "" && c.Object.Key.Namespace != s.Namespace {
		return 0
	}
	if s.Namespaces != nil {
		if _, found := slices.BinarySearch(*s.Namespaces, c.Object.Key.Namespace); !found {
			return 0
		}
	}
	if s.Selector.Empty() {
		return c.Type
	}
	is := c.Type != services.Deleted && s.Selector.Matches(c.Object.Key, c.Object.Labels, c.Object.Fields)
	was := c.Type != services.Added && s.Selector.Matches(c.Object.Key, c.OldLabels, c.OldFields)
	switch {
	case is && was:
		return services.Modified
	case is:
		return services.Added
	case was:
		return services.Deleted
	}
	return 0
}

// signal wakes the watcher for a change at revision that may match its selection.
func (w *Watcher) signal(revision int64) {
	for {
		old := w.pending.Load()
		if old != 0 && old <= revision || w.pending.CompareAndSwap(old, min(revision, math.MaxInt64)) {
			break
		}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
