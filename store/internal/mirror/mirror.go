// Package mirror keeps a copy of every object in memory, in an ordered
// copy-on-write tree that follows etcd, and knows which revision that copy is
// the state of. Readers take snapshots of it, which cost nothing, and wait for
// revisions that it has not reached.
//
// It decides what is current here and what is still held from before; it never
// writes to etcd and answers no request of the contract itself. It serves "Read
// consistency" and "Chunked lists" of the specification.
package mirror

import (
	"context"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
)

// Config is what a mirror is made of.
type Config struct {
	Client *clientv3.Client
	Log    *slog.Logger
	// PinAge is how long a snapshot is held for the following pages of a list, and
	// PinBytes how many bytes of objects that are no longer current all of them
	// may hold together. Zero values choose defaults.
	PinAge   time.Duration
	PinBytes int64
}

// Mirror follows etcd in memory. Run keeps it current.
type Mirror struct {
	client *clientv3.Client
	log    *slog.Logger
	latest latest
	filled chan struct{} // closed when the first snapshot is there
	lag    chan struct{} // holds a signal when somebody waits for a revision

	mu       sync.Mutex
	tree     *objects
	revision int64 // the tree is the state of every revision from changed through revision
	changed  int64
	replaced int64     // bytes of objects replaced or removed since the start
	shared   *Snapshot // of the tree as it is; nil when none was asked for
	waiters  waiters
	pins     pins
	stalled  time.Time // when following etcd ended; zero while it goes on
	loads    int64
}

// New returns an empty mirror.
func New(c Config) *Mirror {
	m := &Mirror{
		client: c.Client, log: c.Log,
		filled: make(chan struct{}), lag: make(chan struct{}, 1),
		tree: new(objects), pins: newPins(c.PinAge, c.PinBytes),
	}
	m.latest.read = m.readRevision
	return m
}

// Filled returns a channel that is closed when the mirror can be read.
func (m *Mirror) Filled() <-chan struct{} { return m.filled }

// Snapshot returns the newest state at hand.
func (m *Mirror) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot()
}

func (m *Mirror) snapshot() *Snapshot {
	if m.shared == nil {
		m.shared = &Snapshot{Revision: m.revision, changed: m.changed, replaced: m.replaced, tree: m.tree.Copy()}
	}
	return m.shared
}

// At returns the state at exactly a revision, if it is still held.
func (m *Mirror) At(revision int64) (*Snapshot, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed <= revision && revision <= m.revision {
		return m.snapshot(), true
	}
	return m.pins.find(revision, time.Now())
}

// Pin holds a snapshot for later calls of At, within the bounds of the mirror.
func (m *Mirror) Pin(s *Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pins.add(s, time.Now(), m.replaced)
}

// Wait returns when the mirror has reached a revision, or with the error of ctx.
func (m *Mirror) Wait(ctx context.Context, revision int64) error {
	m.mu.Lock()
	if m.revision >= revision {
		m.mu.Unlock()
		return nil
	}
	w := m.waiters.add(revision)
	m.mu.Unlock()
	select {
	case m.lag <- struct{}{}:
	default: // it has been noticed already
	}
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiters.remove(w)
		return ctx.Err()
	}
}

// Latest returns etcd's newest revision, read linearizably after the call began.
func (m *Mirror) Latest(ctx context.Context) (int64, error) { return m.latest.get(ctx) }

// Status is how the mirror is doing.
type Status struct {
	Objects  int
	Revision int64
	Pins     int
	Loads    int64 // complete loads so far; one is normal
	// Stalled is since when it has not been following etcd; zero while it does.
	Stalled time.Time
}

// Status returns how the mirror is doing.
func (m *Mirror) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Status{
		Objects: m.tree.Len(), Revision: m.revision, Pins: len(m.pins.held),
		Loads: m.loads, Stalled: m.stalled,
	}
}

// reset makes a freshly loaded tree the current one.
func (m *Mirror) reset(tree *objects, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaced += bytesOf(m.tree)
	m.tree, m.revision, m.changed, m.shared = tree, revision, revision, nil
	m.pins.trim(time.Now(), m.replaced)
	m.waiters.wake(revision)
	if m.loads++; m.loads == 1 {
		close(m.filled)
	}
}

// change is one event of the watch: an object, or nil for a deletion.
type change struct {
	path   string
	object *services.Object
}

// apply brings the tree to a revision by the changes up to it.
func (m *Mirror) apply(changes []change, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		var old *services.Object
		if c.object == nil {
			old, _ = m.tree.Delete(c.path)
		} else {
			old, _ = m.tree.Set(c.path, c.object)
		}
		if old != nil {
			m.replaced += int64(len(old.JSON))
		}
	}
	m.revision, m.changed, m.shared = revision, revision, nil
	m.pins.trim(time.Now(), m.replaced)
	m.waiters.wake(revision)
}

// advance notes that nothing was written up to a revision.
func (m *Mirror) advance(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.revision {
		m.revision, m.shared = revision, nil
		m.waiters.wake(revision)
	}
}

func bytesOf(tree *objects) (sum int64) {
	tree.Scan(func(_ string, o *services.Object) bool {
		sum += int64(len(o.JSON))
		return true
	})
	return sum
}
