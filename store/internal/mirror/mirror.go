// Package mirror keeps a copy of every object in memory, in an ordered copy-on-write tree
// that follows etcd, with the revision of that copy. Readers take snapshots in constant
// time, and wait for revisions that the mirror has not reached.
//
// It also keeps the earlier snapshots of lists in progress. It never writes objects to
// etcd. It serves "Read consistency" and "Chunked lists" of the specification.
package mirror

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/kit/sharedcall"
	"github.com/portico-platform/portico/store/internal/contact"
	"github.com/portico-platform/portico/store/internal/object"
)

// Config configures a Mirror.
type Config struct {
	Client *clientv3.Client
	Codec  object.Codec
	Log    *slog.Logger
	// PinAge is how long a snapshot is kept for the following pages of a list, and
	// PinBytes bounds the bytes of objects that only pinned snapshots keep alive. Zero
	// values select defaults.
	PinAge   time.Duration
	PinBytes int64
}

// Mirror is a copy of etcd's objects, which follows etcd while Run runs.
type Mirror struct {
	client *clientv3.Client
	codec  object.Codec
	log    *slog.Logger
	latest *sharedcall.Group[struct{}, int64]
	// contact monitors whether etcd responds.
	contact *contact.Contact
	// pinAge and pinBytes are as configured.
	pinAge   time.Duration
	pinBytes int64
	keeper   *epoch.Keeper
	lag      chan struct{} // signaled when a reader waits for a revision

	mu         sync.Mutex
	epoch      epoch.Epoch        // of the tree, or of the load in progress
	filled     chan struct{}      // closed while the tree can be read
	void       bool               // nothing is loaded: at the start, and after a break of history
	cut        context.CancelFunc // ends the watch; nil if there is none
	tree       *objects
	revision   int64 // the tree is the state of every revision from changed through revision
	changed    int64
	heads      heads
	unreadable unreadable // of the tree
	bytes      int64      // of the objects of the tree
	replaced   int64      // bytes of objects replaced or removed since the start
	shared     *Snapshot  // of the current tree; nil until requested
	waiters    waiters
	pins       pins
	stalled    time.Time // when the watch of etcd broke; zero while it runs
	stuck      int       // watches in a row that were ended because they made no progress
	newest     int64     // the newest revision of the epoch that was read from etcd
	loads      int64
}

// New returns an empty mirror.
func New(c Config) *Mirror {
	m := &Mirror{
		client: c.Client, codec: c.Codec, log: c.Log, pinAge: c.PinAge, pinBytes: c.PinBytes,
		filled: make(chan struct{}), lag: make(chan struct{}, 1),
		tree: new(objects), pins: newPins(c.PinAge, c.PinBytes), void: true,
	}
	m.keeper = epoch.New(epoch.Config{KV: etcd.Hedged(c.Client), Log: c.Log, Broken: m.forget})
	m.contact = contact.New(contact.Config{KV: etcd.Hedged(c.Client), Key: epoch.Key, Log: c.Log})
	m.latest = sharedcall.New(readTimeout, func(ctx context.Context, _ []struct{}) (int64, error) { return m.readRevision(ctx) })
	return m
}

// Filled returns a channel that is closed when the mirror can be read. After a break of
// etcd's history it is a new channel, until everything has been reloaded.
func (m *Mirror) Filled() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filled
}

// Epoch returns the epoch of the mirror's state.
func (m *Mirror) Epoch() epoch.Epoch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch
}

// Broken returns why the mirror is empty after a break of etcd's history; nil
// otherwise.
func (m *Mirror) Broken() error {
	if err := m.keeper.Broken(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.void && m.loads > 0 {
		return errors.New("a new epoch of etcd's history is being loaded")
	}
	return nil
}

// forget drops the whole state after a break of history: readers must not see state that
// etcd no longer has. Run then reloads.
func (m *Mirror) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetAll()
}

func (m *Mirror) forgetAll() {
	if m.void {
		return
	}
	m.void, m.filled = true, make(chan struct{})
	m.tree, m.bytes, m.shared, m.revision, m.changed, m.heads = new(objects), 0, nil, 0, 0, heads{}
	m.unreadable = unreadable{}
	m.pins = newPins(m.pinAge, m.pinBytes)
	m.waiters.giveUp()
	if m.cut != nil {
		m.cut()
	}
}

// enter records etcd's current epoch and revision. State of another epoch is dropped.
func (m *Mirror) enter(e epoch.Epoch, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epoch != e {
		m.epoch, m.newest = e, 0
		m.forgetAll()
	}
	m.newest = max(m.newest, revision)
}

// Snapshot returns the newest state in memory.
func (m *Mirror) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot()
}

// Held returns Snapshot, and false while nothing is loaded.
func (m *Mirror) Held() (*Snapshot, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot(), !m.void
}

func (m *Mirror) snapshot() *Snapshot {
	if m.shared == nil {
		m.shared = &Snapshot{Epoch: m.epoch.ID, Revision: m.revision, changed: m.changed, replaced: m.replaced, tree: m.tree.Copy()}
	}
	return m.shared
}

// At returns the state at exactly a revision, if it is still in memory.
func (m *Mirror) At(revision int64) (*Snapshot, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed <= revision && revision <= m.revision {
		return m.snapshot(), true
	}
	return m.pins.find(revision, time.Now())
}

// Pin keeps a snapshot for later calls of At, within PinAge and PinBytes.
func (m *Mirror) Pin(s *Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pins.add(s, time.Now(), m.replaced)
}

// ErrBroken is the error of Wait when etcd's history broke: the revision belongs to an
// earlier epoch.
var ErrBroken = errors.New("the revision belongs to an earlier history of etcd")

// Wait returns nil when the mirror has reached a revision, else ErrBroken,
// contact.ErrAway while etcd is away, or the error of ctx.
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
	default: // already signaled
	}
	select {
	case <-w.reached:
		if w.broken {
			return ErrBroken
		}
		return nil
	case <-m.contact.Away():
		m.leave(w)
		return contact.ErrAway
	case <-ctx.Done():
		m.leave(w)
		return ctx.Err()
	}
}

// leave removes a waiter.
func (m *Mirror) leave(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiters.remove(w)
}

// Contact returns the monitor of etcd. The mirror's Run runs it.
func (m *Mirror) Contact() *contact.Contact { return m.contact }

// Latest returns etcd's newest revision from a linearizable read that starts after the
// call. It returns contact.ErrAway while etcd is away.
func (m *Mirror) Latest(ctx context.Context) (int64, error) {
	if err := m.contact.Err(); err != nil {
		return 0, err
	}
	revision, _, err := m.latest.Do(ctx, struct{}{})
	return revision, err
}

// Status is the state of the mirror for health checks and metrics.
type Status struct {
	Objects int
	// Bytes is the size of the objects in their encoding; they take about twice as much memory.
	Bytes    int64
	Revision int64
	Pins     int
	Loads    int64 // complete loads so far; normally one
	// Stalled is the time since which it does not follow etcd; zero while it does.
	Stalled time.Time
}

// Status returns the state of the mirror.
func (m *Mirror) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Status{
		Objects: m.tree.Len(), Bytes: m.bytes, Revision: m.revision, Pins: len(m.pins.held),
		Loads: m.loads, Stalled: m.stalled,
	}
}

// reset installs a freshly loaded tree, unless its epoch has ended.
func (m *Mirror) reset(tree *objects, revision int64, of epoch.Epoch) {
	bytes, bad := sumOf(tree)
	m.mu.Lock()
	defer m.mu.Unlock()
	if of != m.epoch {
		return
	}
	m.replaced += m.bytes
	m.tree, m.bytes, m.revision, m.changed, m.shared = tree, bytes, revision, revision, nil
	m.heads, m.unreadable = heads{floor: revision}, bad
	m.pins.trim(time.Now(), m.replaced)
	m.loads++
	m.waiters.wake(revision)
	if m.void {
		m.void = false
		close(m.filled)
	}
}

// change is one event of the watch: an object, or nil for a deletion.
type change struct {
	path     string
	revision int64
	object   *services.Object
}

// apply applies the changes up to a revision.
func (m *Mirror) apply(changes []change, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.void {
		return // the watch is being cancelled
	}
	m.keeper.Saw(revision)
	for _, c := range changes {
		var old *services.Object
		if c.object == nil {
			old, _ = m.tree.Delete(c.path)
		} else {
			old, _ = m.tree.Set(c.path, c.object)
			m.bytes += int64(len(c.object.JSON))
		}
		m.unreadable.put(c.path, c.object)
		if old != nil {
			m.bytes -= int64(len(old.JSON))
			m.replaced += int64(len(old.JSON))
		}
		m.heads.changed(c.path, c.revision)
	}
	m.revision, m.changed, m.shared = revision, revision, nil
	m.moved()
	m.pins.trim(time.Now(), m.replaced)
	m.waiters.wake(revision)
}

// advance records that nothing was written up to a revision.
func (m *Mirror) advance(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.revision && !m.void {
		m.revision, m.shared = revision, nil
		m.moved()
		m.waiters.wake(revision)
	}
}

// sumOf returns the bytes of the objects of a tree, and those that cannot be read.
func sumOf(tree *objects) (bytes int64, bad unreadable) {
	tree.Scan(func(path string, o *services.Object) bool {
		bytes += int64(len(o.JSON))
		if object.Unreadable(o) {
			bad.put(path, o)
		}
		return true
	})
	return bytes, bad
}
