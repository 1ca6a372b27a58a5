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
		return precedes(a.namespace, b.namespace)
	}
	return a.name < b.name
}

// precedes reports whether the keys of a namespace come before those of another, in the order of
// the store: a slash ends a namespace there.
func precedes(a, b string) bool {
	n := min(len(a), len(b))
	switch {
	case a[:n] != b[:n]:
		return a < b
	case len(a) == len(b):
		return false
	case len(a) < len(b):
		return '/' < b[n]
	}
	return a[n] < '/'
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
func (m *Mirror[T]) Get(namespace, name string) (T, bool) { return m.Now().Get(namespace, name) }

// List returns the values of a namespace, or of all namespaces if it is empty, in the order of
// the store's lists.
func (m *Mirror[T]) List(namespace string) []T { return m.Now().List(namespace) }

// View is the content of a mirror at one revision.
type View[T any] struct{ of *snapshot[T] }

// Now returns the present content.
func (m *Mirror[T]) Now() View[T] { return View[T]{m.now.Load()} }

// Revision returns the revision of the content; 0 before the mirror is ready.
func (v View[T]) Revision() int64 { return v.of.revision }

// Reached is Mirror.Reached.
func (v View[T]) Reached() (revision, changed int64) { return v.of.revision, v.of.changed }

// Replaced is closed when there is a newer content.
func (v View[T]) Replaced() <-chan struct{} { return v.of.replaced }

// Get is Mirror.Get.
func (v View[T]) Get(namespace, name string) (T, bool) {
	found, ok := v.of.objects.Get(held[T]{namespace: namespace, name: name})
	return found.value, ok
}

// List is Mirror.List.
func (v View[T]) List(namespace string) []T {
	var values []T
	if namespace == "" {
		values = make([]T, 0, v.of.objects.Len())
	}
	v.of.objects.Ascend(held[T]{namespace: namespace}, func(h held[T]) bool {
		if namespace != "" && h.namespace != namespace {
			return false
		}
		values = append(values, h.value)
		return true
	})
	return values
}

// Difference calls see for each object whose value differs in two contents, in the order of the
// store's lists. The zero View is empty; for an object that a content lacks see gets the zero T.
func Difference[T comparable](was, is View[T], see func(was, is T)) {
	if was.of == is.of {
		return
	}
	var none T
	old, now := was.cursor(), is.cursor()
	for old.more || now.more {
		switch {
		case !now.more || old.more && before(old.Item(), now.Item()):
			see(old.Item().value, none)
			old.more = old.Next()
		case !old.more || before(now.Item(), old.Item()):
			see(none, now.Item().value)
			now.more = now.Next()
		default:
			if a, b := old.Item().value, now.Item().value; a != b {
				see(a, b)
			}
			old.more, now.more = old.Next(), now.Next()
		}
	}
}

// cursor is a position in a content; more is false at its end.
type cursor[T any] struct {
	btree.IterG[held[T]]
	more bool
}

func (v View[T]) cursor() *cursor[T] {
	objects := newObjects[T]()
	if v.of != nil {
		objects = v.of.objects
	}
	c := &cursor[T]{IterG: objects.Iter()}
	c.more = c.First()
	return c
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
