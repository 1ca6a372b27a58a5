package changes

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
)

// refreshEvery is the interval at which a waiting reader requests a replay.
const refreshEvery = 20 * time.Millisecond

// ErrSkip is returned by MirrorConfig.Decode for objects that are not mirrored.
var ErrSkip = errors.New("not mirrored")

// MirrorConfig configures a Mirror. All fields but Log and Changed are required.
type MirrorConfig[T any] struct {
	Source        Source
	Store         services.Reader
	GroupResource resource.GroupResource
	// Decode returns the mirrored value of an object. An object whose Decode fails is not
	// mirrored; errors other than ErrSkip are logged.
	Decode func(services.Object) (T, error)
	// Changed is called by the goroutine of Run after values have changed, for values that
	// are computed from the whole mirror.
	Changed func()
	Log     *slog.Logger
}

// Mirror holds the decoded objects of one resource type in memory: it lists, then follows,
// and lists again if it has missed changes that the hub no longer has. Reads take no lock.
type Mirror[T any] struct {
	config MirrorConfig[T]
	ready  chan struct{}
	now    atomic.Pointer[snapshot[T]]
	stream atomic.Pointer[Stream]
}

// snapshot is the mirror at one revision; it never changes.
type snapshot[T any] struct {
	objects  *btree.BTreeG[held[T]]
	revision int64
	changed  int64         // the objects are the same since this revision
	replaced chan struct{} // closed when there is a newer one
}

type held[T any] struct {
	namespace, name string
	value           T
}

func before[T any](a, b held[T]) bool {
	if a.namespace != b.namespace {
		return a.namespace < b.namespace
	}
	return a.name < b.name
}

func newObjects[T any]() *btree.BTreeG[held[T]] {
	return btree.NewBTreeGOptions(before[T], btree.Options{NoLocks: true})
}

// NewMirror returns a mirror that is empty until it runs.
func NewMirror[T any](config MirrorConfig[T]) *Mirror[T] {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	m := &Mirror[T]{config: config, ready: make(chan struct{})}
	m.now.Store(&snapshot[T]{objects: newObjects[T](), replaced: make(chan struct{})})
	return m
}

// Run keeps the mirror up to date until ctx ends, and then returns nil.
func (m *Mirror[T]) Run(ctx context.Context) error {
	for pauses := retry.NewBackoff(minBackoff, maxBackoff); ctx.Err() == nil; {
		revision, epoch, err := m.list(ctx)
		if err == nil {
			pauses.Reset()
			err = m.follow(ctx, revision, epoch)
		}
		if ctx.Err() != nil {
			break
		}
		m.config.Log.Warn("mirror is listing again", "resource", m.config.GroupResource.String(), "error", err)
		pauses.Pause(ctx)
	}
	return nil
}

// Ready is closed after the first list.
func (m *Mirror[T]) Ready() <-chan struct{} { return m.ready }

// Revision returns the revision that the mirror has reached; 0 before it is ready.
func (m *Mirror[T]) Revision() int64 { return m.now.Load().revision }

// Reached returns the revision that the mirror has reached, and the revision since which its
// objects are the same.
func (m *Mirror[T]) Reached() (revision, changed int64) {
	now := m.now.Load()
	return now.revision, now.changed
}

// Get returns the value of one object.
func (m *Mirror[T]) Get(namespace, name string) (T, bool) {
	found, ok := m.now.Load().objects.Get(held[T]{namespace: namespace, name: name})
	return found.value, ok
}

// List returns the values of a namespace, or of all namespaces if it is empty, ordered by
// namespace and name.
func (m *Mirror[T]) List(namespace string) []T {
	var values []T
	m.now.Load().objects.Ascend(held[T]{namespace: namespace}, func(h held[T]) bool {
		if namespace != "" && h.namespace != namespace {
			return false
		}
		values = append(values, h.value)
		return true
	})
	return values
}

// WaitFor returns when the mirror has reached a revision, or with the error of ctx. It
// requests replays instead of waiting for the next progress report.
func (m *Mirror[T]) WaitFor(ctx context.Context, revision int64) error {
	now := m.now.Load()
	if now.revision >= revision {
		return nil
	}
	refresh := time.NewTicker(refreshEvery)
	defer refresh.Stop()
	m.refresh()
	for ; now.revision < revision; now = m.now.Load() {
		select {
		case <-now.replaced:
		case <-refresh.C:
			m.refresh()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (m *Mirror[T]) refresh() {
	if stream := m.stream.Load(); stream != nil {
		stream.Refresh()
	}
}

// list fills the mirror from the store and returns the revision and epoch of the list.
func (m *Mirror[T]) list(ctx context.Context) (revision int64, epoch string, err error) {
	objects := newObjects[T]()
	request := services.ListRequest{GroupResource: m.config.GroupResource}
	for {
		page, err := m.config.Store.List(ctx, request)
		if err != nil {
			return 0, "", err
		}
		for _, o := range page.Objects {
			m.set(objects, o)
		}
		if page.Next == "" {
			m.publish(objects, page.Revision)
			return page.Revision, page.Epoch, nil
		}
		request = page.Following(request)
	}
}

// follow applies the changes after a revision; it returns only with an error.
func (m *Mirror[T]) follow(ctx context.Context, after int64, epoch string) error {
	stream, err := m.config.Source.Follow(ctx, m.config.GroupResource, after)
	if err != nil {
		return err
	}
	defer stream.Close()
	stream.epoch = epoch
	m.stream.Store(stream)
	for {
		batch, err := stream.Next(ctx)
		if err != nil {
			return err
		}
		objects := m.now.Load().objects
		if len(batch.Changes) > 0 {
			objects = objects.Copy()
		}
		for _, c := range batch.Changes {
			if c.Type == services.Deleted {
				objects.Delete(held[T]{namespace: c.Object.Key.Namespace, name: c.Object.Key.Name})
				continue
			}
			m.set(objects, c.Object)
		}
		m.publish(objects, batch.Through)
	}
}

// set stores the value of an object, or removes it if it is not mirrored.
func (m *Mirror[T]) set(objects *btree.BTreeG[held[T]], o services.Object) {
	h := held[T]{namespace: o.Key.Namespace, name: o.Key.Name}
	value, err := m.config.Decode(o)
	if err != nil {
		if !errors.Is(err, ErrSkip) {
			m.config.Log.Warn("an object cannot be decoded", "object", o.Key.String(), "error", err)
		}
		objects.Delete(h)
		return
	}
	h.value = value
	objects.Set(h)
}

// publish makes objects the mirror's content. They must not be changed afterwards.
func (m *Mirror[T]) publish(objects *btree.BTreeG[held[T]], revision int64) {
	old := m.now.Load()
	changed := old.changed
	if objects != old.objects {
		changed = revision
	}
	m.now.Store(&snapshot[T]{objects: objects, revision: revision, changed: changed, replaced: make(chan struct{})})
	close(old.replaced)
	if old.revision == 0 {
		close(m.ready)
	}
	if objects != old.objects && m.config.Changed != nil {
		m.config.Changed()
	}
}
