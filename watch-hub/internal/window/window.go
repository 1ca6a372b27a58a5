// Package window holds the recent changes of all resource types in memory, bounded by
// age and by bytes, with a log for each type.
//
// It links each change to its predecessor, and returns the changes of one type after a
// revision. It keeps the revision of the newest dropped change of each type, so that many
// changes of one type do not make the logs of others incomplete. It never reads etcd: the
// caller reads dropped changes from there. It serves "Watch procedure" of the
// specification.
package window

import (
	"sort"
	"sync"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/resource"
)

// Bounds of one Replay response, so that it fits into a message.
const (
	PageChanges = 1000
	PageBytes   = 1 << 20
)

const (
	// overhead is the memory of a change besides its strings.
	overhead = 400
	// quietAfter is the minimum time without changes after which Progress omits a type.
	quietAfter = 30 * time.Second
	// maxDropped is the maximum number of types in Window.dropped.
	maxDropped = 4096
)

// Window is a window of history, complete in (floor, through].
type Window struct {
	age   time.Duration
	bytes int64

	mu      sync.RWMutex
	epoch   epoch.Epoch // of all revisions
	floor   int64       // everything after it is in the window
	through int64       // everything up to it has been seen
	newest  int64       // the newest change seen; without changes the initial floor
	size    int64
	limit   int64       // of size; at most bytes
	order   queue[slot] // of all types, oldest first
	logs    map[resource.GroupResource]*log

	// began is the revision after which the window has seen every change. dropped is the
	// revision of the newest dropped change of each type, at most floor. A type without
	// an entry has no dropped change after began.
	began   int64
	dropped map[resource.GroupResource]int64
	// lost is the revision of the newest change of each type that cannot be decrypted.
	lost map[resource.GroupResource]int64
	// No type that Progress omits has changed after quiet, which is advanced to through
	// every quietAfter; marked is its next value.
	quiet, marked int64
	markedAt      time.Time
}

// log holds the changes of one type, oldest first.
type log = queue[services.Change]

// slot is the entry of one change in the order of all types.
type slot struct {
	gr   resource.GroupResource
	at   time.Time
	size int64
}

// New returns an empty window with these bounds.
func New(age time.Duration, bytes int64) *Window {
	return &Window{age: age, bytes: bytes, limit: bytes, logs: map[resource.GroupResource]*log{}, dropped: map[resource.GroupResource]int64{}, lost: map[resource.GroupResource]int64{}}
}

// Reset empties the window, which then starts after floor, a revision of the epoch.
func (w *Window) Reset(floor int64, of epoch.Epoch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch, w.floor, w.through, w.newest, w.size = of, floor, floor, floor, 0
	w.order, w.logs = queue[slot]{}, map[resource.GroupResource]*log{}
	w.began, w.quiet, w.marked, w.markedAt = floor, floor, floor, time.Time{}
	clear(w.dropped)
	clear(w.lost)
}

// Lose records that a change of a type cannot be read: its history begins after that revision, so that
// followers that have not seen it list again.
func (w *Window) Lose(gr resource.GroupResource, revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[gr] = max(w.lost[gr], revision)
}

// Append adds changes in the order of their revisions, and sets their Previous.
func (w *Window) Append(now time.Time, changes []services.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range changes {
		c := &changes[i]
		gr := c.Object.Key.GroupResource
		l := w.logs[gr]
		if l == nil {
			l = &log{}
			w.logs[gr] = l
		}
		c.Previous = w.floorOf(gr)
		if l.length() > 0 {
			c.Previous = max(l.last().Object.Revision, w.lost[gr])
		}
		s := slot{gr: gr, at: now, size: Size(*c)}
		l.push(*c)
		w.order.push(s)
		w.size += s.size
		w.through, w.newest = c.Object.Revision, c.Object.Revision
	}
	w.trim()
}

// trim drops the oldest changes beyond the limit.
func (w *Window) trim() {
	for w.size > w.limit && w.order.length() > 0 {
		w.drop()
	}
}

// Bytes returns the approximate size of the window.
func (w *Window) Bytes() int64 {
	_, bytes := w.Held()
	return bytes
}

// Bound limits the window further than its own limit, until the next call.
func (w *Window) Bound(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = min(w.bytes, bytes)
	w.trim()
}

// Prepend adds the changes in (after, floor], in the order of their revisions. It adds
// nothing and returns false if floor is not that of the window. It adds the newest of them
// and returns false if not all fit; otherwise it returns true.
func (w *Window) Prepend(now time.Time, after, floor int64, changes []services.Change) (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.floor != floor {
		return false
	}
	size, first := w.size, len(changes)
	for first > 0 && size+Size(changes[first-1]) <= w.limit {
		first--
		size += Size(changes[first])
	}
	if more = first == 0; !more {
		after = changes[first-1].Object.Revision
	}
	if w.order.length() > 0 {
		now = w.order.first().at // ages must not increase towards newer changes
	}
	order := make([]slot, 0, len(changes)-first+w.order.length())
	logs := map[resource.GroupResource][]services.Change{}
	for _, c := range changes[first:] {
		gr := c.Object.Key.GroupResource
		c.Previous = after
		if l := logs[gr]; len(l) > 0 {
			c.Previous = l[len(l)-1].Object.Revision
		}
		logs[gr] = append(logs[gr], c)
		order = append(order, slot{gr: gr, at: now, size: Size(c)})
	}
	w.order = queue[slot]{items: append(order, w.order.live()...)}
	for gr, l := range logs {
		if later := w.logs[gr]; later != nil {
			l = append(l, later.live()...)
		}
		w.logs[gr] = &log{items: l}
	}
	w.floor, w.size = after, size
	w.began = min(w.began, after)
	for gr, revision := range w.dropped {
		w.dropped[gr] = min(revision, after)
	}
	return more
}

// Advance records that everything up to a revision has been seen.
func (w *Window) Advance(through int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.through = max(w.through, through)
}

// Expire drops changes older than the window's age.
func (w *Window) Expire(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.markedAt) >= quietAfter {
		w.quiet, w.marked, w.markedAt = w.marked, w.through, now
	}
	for w.order.length() > 0 && now.Sub(w.order.first().at) > w.age {
		w.drop()
	}
}

// drop drops the oldest change of all types, which is also the oldest of its type.
func (w *Window) drop() {
	s := w.order.first()
	l := w.logs[s.gr]
	w.floor = l.first().Object.Revision
	if w.dropped[s.gr] = w.floor; len(w.dropped) > maxDropped {
		w.began = w.floor
		clear(w.dropped)
	}
	w.size -= s.size
	if l.pop(); l.length() == 0 {
		delete(w.logs, s.gr)
	}
	w.order.pop()
}

// Replay returns changes from the window. ok is false if changes after r.After may have
// been dropped.
func (w *Window) Replay(r services.ReplayRequest) (answer services.Replay, ok bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if r.After < w.floorOf(r.GroupResource) {
		return services.Replay{}, false
	}
	answer.Through, answer.Epoch = max(w.through, r.After), w.epoch.ID
	l := w.logs[r.GroupResource]
	if l == nil {
		return answer, true
	}
	held := l.live()
	held = held[sort.Search(len(held), func(i int) bool { return held[i].Object.Revision > r.After }):]
	n := pageLength(held, r.Limit)
	if n < len(held) {
		answer.Through, answer.More = held[n-1].Object.Revision, true
	}
	answer.Changes = append([]services.Change(nil), held[:n]...)
	return answer, true
}

// pageLength returns how many of the changes fit into one response: at least one, unless
// there are none.
func pageLength(changes []services.Change, limit int) int {
	if limit <= 0 || limit > PageChanges {
		limit = PageChanges
	}
	var bytes int64
	for i, c := range changes {
		if bytes += Size(c); i > 0 && (bytes > PageBytes || i == limit) {
			return i
		}
	}
	return len(changes)
}

// Progress returns the revisions by which followers detect gaps.
func (w *Window) Progress() services.Progress {
	w.mu.RLock()
	defer w.mu.RUnlock()
	p := services.Progress{Epoch: w.epoch.ID, Through: w.through, Floor: max(w.began, w.quiet), Heads: map[resource.GroupResource]int64{}}
	for gr, revision := range w.dropped {
		if revision > p.Floor {
			p.Heads[gr] = revision
		}
	}
	for gr, l := range w.logs {
		if revision := l.last().Object.Revision; revision > p.Floor {
			p.Heads[gr] = revision
		}
	}
	for gr, revision := range w.lost {
		if revision > p.Floor {
			p.Heads[gr] = max(p.Heads[gr], revision)
		}
	}
	return p
}

// Floor returns the revision after which all changes of a type are in the window.
func (w *Window) Floor(gr resource.GroupResource) int64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.floorOf(gr)
}

func (w *Window) floorOf(gr resource.GroupResource) int64 {
	if revision, ok := w.dropped[gr]; ok {
		return max(revision, w.lost[gr])
	}
	return max(w.began, w.lost[gr])
}

// Span returns the range (floor, through] in which the window is complete.
func (w *Window) Span() (floor, through int64) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.floor, w.through
}

// Epoch returns the epoch of the window's revisions.
func (w *Window) Epoch() epoch.Epoch {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.epoch
}

// Newest returns the revision of the newest change appended since the last Reset, or its
// floor if there is none.
func (w *Window) Newest() int64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.newest
}

// Held returns the number of changes in the window, and their approximate size in bytes.
func (w *Window) Held() (changes int, bytes int64) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.order.length(), w.size
}

// Size approximates the memory of a change.
func Size(c services.Change) int64 {
	n := overhead + len(c.Object.JSON) + len(c.OldJSON)
	for _, m := range []map[string]string{c.Object.Labels, c.Object.Fields, c.OldLabels, c.OldFields} {
		for name, value := range m {
			n += len(name) + len(value) + 48
		}
	}
	return int64(n)
}
