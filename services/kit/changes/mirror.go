package changes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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
	// Decode returns the mirrored value of an object. With ErrSkip it is not mirrored; after any
	// other error it cannot be read, which is not the same: see View.Unreadable.
	Decode func(services.Object) (T, error)
	// Keep lets the last value of an object that can no longer be read stay in the content, for
	// values that restrict what may be done. Without it there is none, for values that permit.
	Keep bool
	// Changed is called after values have changed, for values that are computed from the whole
	// mirror, by one goroutine at a time.
	Changed func()
	Log     *slog.Logger
}

// Mirror holds the decoded objects of one resource type in memory: it lists, then follows,
// and lists again if it has missed changes that the hub no longer has. Reads take no lock.
type Mirror[T any] struct {
	config MirrorConfig[T]
	ready  chan struct{}
	unread chan struct{} // has a value if objects may have to be read again
	mu     sync.Mutex    // held while the content is changed
	now    atomic.Pointer[snapshot[T]]
	stream atomic.Pointer[Stream]
}

// snapshot is the mirror at one revision; it never changes.
type snapshot[T any] struct {
	content[T]
	revision int64
	changed  int64         // the objects are the same since this revision
	replaced chan struct{} // closed when there is a newer one
}

// NewMirror returns a mirror that is empty until it runs.
func NewMirror[T any](config MirrorConfig[T]) *Mirror[T] {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	m := &Mirror[T]{config: config, ready: make(chan struct{}), unread: make(chan struct{}, 1)}
	m.now.Store(&snapshot[T]{content: content[T]{objects: newObjects[T]()}, replaced: make(chan struct{})})
	return m
}

// Run keeps the mirror up to date until ctx ends, and then returns nil.
func (m *Mirror[T]) Run(ctx context.Context) error {
	var again sync.WaitGroup
	defer again.Wait()
	again.Go(func() { m.readAgainAlways(ctx) })
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

// Await returns the value of one object once there is one; false if ctx ends before.
func (m *Mirror[T]) Await(ctx context.Context, namespace, name string) (value T, ok bool) {
	for {
		now := m.now.Load()
		if value, ok = (View[T]{now}).Get(namespace, name); ok {
			return value, true
		}
		select {
		case <-now.replaced:
		case <-ctx.Done():
			return value, false
		}
	}
}

func (m *Mirror[T]) refresh() {
	if stream := m.stream.Load(); stream != nil {
		stream.Refresh()
	}
}

// list fills the mirror from the store and returns the revision and epoch of the list.
func (m *Mirror[T]) list(ctx context.Context) (revision int64, epoch string, err error) {
	next := content[T]{objects: newObjects[T]()}
	before := m.now.Load().content
	request := services.ListRequest{GroupResource: m.config.GroupResource, WithUnreadable: true}
	for {
		page, err := m.config.Store.List(ctx, request)
		if err != nil {
			return 0, "", err
		}
		for _, o := range page.Objects {
			m.set(&next, before, o)
		}
		if page.Next == "" {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.publish(next, page.Revision)
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
		m.apply(batch)
	}
}

// apply applies a batch.
func (m *Mirror[T]) apply(batch Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.now.Load().content
	if len(batch.Changes) > 0 {
		next = next.copy()
	}
	for _, c := range batch.Changes {
		if c.Type == services.Deleted {
			next.remove(c.Object.Key)
			continue
		}
		m.set(&next, next, c.Object)
	}
	m.publish(next, batch.Through)
}

// set stores the value of an object, or removes it if it is not mirrored. before is the content that may have
// an earlier value of it.
func (m *Mirror[T]) set(next *content[T], before content[T], o services.Object) {
	h := held[T]{namespace: o.Key.Namespace, name: o.Key.Name}
	err := o.Err()
	if err == nil {
		h.value, err = m.config.Decode(o)
	}
	switch {
	case err == nil:
		delete(next.unread, o.Key)
		next.objects.Set(h)
	case errors.Is(err, ErrSkip):
		next.remove(o.Key)
	default:
		m.spoil(next, before, Unread{Key: o.Key, Revision: o.Revision, Reason: cmp.Or(o.Unreadable, err.Error())})
	}
}

// spoil records that an object cannot be read.
func (m *Mirror[T]) spoil(next *content[T], before content[T], u Unread) {
	if old, known := before.unread[u.Key]; !known || old.Revision != u.Revision {
		m.config.Log.Error("an object cannot be read", "object", u.Key.String(), "revision", u.Revision, "reason", u.Reason)
	}
	last, known := before.objects.Get(held[T]{namespace: u.Key.Namespace, name: u.Key.Name})
	next.remove(u.Key)
	if u.Known = known && m.config.Keep; u.Known {
		next.objects.Set(last)
	}
	if next.unread == nil {
		next.unread = map[resource.Key]Unread{}
	}
	next.unread[u.Key] = u
}

// publish makes a content that of the mirror. It must not be changed afterwards. mu is held.
func (m *Mirror[T]) publish(next content[T], revision int64) {
	old := m.now.Load()
	changed := old.changed
	if next.objects != old.objects {
		changed = revision
	}
	m.now.Store(&snapshot[T]{content: next, revision: revision, changed: changed, replaced: make(chan struct{})})
	m.wakeReader()
	close(old.replaced)
	if old.revision == 0 {
		close(m.ready)
	}
	if next.objects != old.objects && m.config.Changed != nil {
		m.config.Changed()
	}
}
