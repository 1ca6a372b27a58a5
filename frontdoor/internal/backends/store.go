package backends

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/monotonic"
	"github.com/portico-platform/portico/services/kit/sharedcall"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// headsTimeout bounds one call of the store for heads.
	headsTimeout = 10 * time.Second
	// lagWait is how long a read waits for a copy that is behind before it goes to the store.
	lagWait = 25 * time.Millisecond
	// trusted is how long after its verification a copy serves reads that need not be the
	// newest.
	trusted = 2 * time.Second
	// restAfterError is how long no heads are requested after a failure, for example of a store
	// of an earlier release.
	restAfterError = time.Second
)

// Store is a Store in another process, in front of which the front door keeps copies of the
// types that are read often. A most-recent read of a copied type needs the head of the type, by a
// call that all concurrent reads share: the copy is the newest state if it has reached the
// head. In all other cases the read goes to the store.
type Store struct {
	services.Store
	copies *copies
	latest *sharedcall.Group[resource.GroupResource, []services.Head]
	// restUntil is when heads are requested again, as monotonic.Now.
	restUntil atomic.Int64
	reads     *prometheus.CounterVec
}

// StoreConfig configures a Store.
type StoreConfig struct {
	Store   services.Store
	Heads   services.HeadReader
	Changes changes.Source
	// Bytes bounds the objects in all copies.
	Bytes   int64
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// NewStore returns a Store without copies until it runs.
func NewStore(c StoreConfig) *Store {
	s := &Store{Store: c.Store,
		copies: &copies{source: c.Changes, store: c.Store, log: c.Log, limit: c.Bytes, of: map[resource.GroupResource]*typeCopy{},
			points: map[resource.GroupResource]int{}, tooLarge: map[resource.GroupResource]time.Time{}, epochs: map[resource.GroupResource]string{}},
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portico_frontdoor_store_reads_total",
			Help: "Gets and lists of objects, by source: a copy in this process, or the store."}, []string{"from"}),
	}
	s.latest = sharedcall.New(headsTimeout, c.Heads.Heads)
	if c.Metrics != nil {
		c.Metrics.MustRegister(s.reads, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portico_frontdoor_copied_bytes",
			Help: "Bytes of the objects in copies of resource types."}, s.copies.held))
	}
	return s
}

// Run keeps copies until ctx ends, and then returns nil.
func (s *Store) Run(ctx context.Context) error {
	s.copies.run(ctx)
	return nil
}

// Get implements services.Reader.
func (s *Store) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	if one := s.copies.ready(r.Key.GroupResource); one != nil && r.Read.Mode == services.AnyRevision {
		if o, ok := one.written.find(r.Key, one.mirror.Revision()); ok {
			return o, nil
		}
	}
	view, _, ok := s.view(ctx, r.Key.GroupResource, r.Read, 1)
	if !ok {
		s.reads.WithLabelValues("store").Inc()
		return s.Store.Get(ctx, r)
	}
	s.reads.WithLabelValues("copy").Inc()
	if view.Err(r.Key) != nil {
		return s.Store.Get(ctx, r) // it may be readable now
	}
	object, ok := view.Get(r.Key.Namespace, r.Key.Name)
	if !ok || object.Key != r.Key {
		return services.Object{}, services.NotFound(r.Key.Group, r.Key.Resource, r.Key.Name)
	}
	return *object, nil
}

// List implements services.Reader. Lists in chunks go to the store, which keeps their state
// for the following chunks.
func (s *Store) List(ctx context.Context, r services.ListRequest) (services.Page, error) {
	if r.Limit != 0 || r.After != "" || r.Read.Mode == services.Exact || r.WithUnreadable {
		s.reads.WithLabelValues("store").Inc()
		return s.Store.List(ctx, r)
	}
	selector, err := resource.ParseSelector(r.LabelSelector, r.FieldSelector)
	if err != nil {
		return services.Page{}, services.BadRequest("%v", err)
	}
	view, head, ok := s.view(ctx, r.GroupResource, r.Read, listPoints)
	if !ok || view.Unreadable(r.Namespace) != nil {
		s.reads.WithLabelValues("store").Inc()
		return s.Store.List(ctx, r)
	}
	s.reads.WithLabelValues("copy").Inc()
	page := services.Page{Revision: max(view.Revision(), head.Revision), Epoch: head.Epoch}
	objects := view.List(r.Namespace)
	if selector.Empty() {
		page.Objects = make([]services.Object, 0, len(objects))
	}
	for _, o := range objects {
		if selector.Empty() || selector.Matches(o.Key, o.Labels, o.Fields) {
			page.Objects = append(page.Objects, *o)
		}
	}
	return page, nil
}

// view returns a copy that satisfies a read, with the head of that moment if the read needs
// the newest state.
func (s *Store) view(ctx context.Context, gr resource.GroupResource, read services.Read, points int) (view changes.View[*services.Object], head services.Head, ok bool) {
	one := s.copies.find(gr, points)
	if one == nil {
		return view, head, false
	}
	now := monotonic.Now()
	switch {
	case read.Mode == services.AnyRevision && now-one.verified.Load() < int64(trusted):
		return one.mirror.Now(), head, true
	case read.Mode == services.NotOlderThan && now-one.verified.Load() < int64(trusted):
		if view = one.mirror.Now(); view.Revision() >= read.Revision {
			return view, head, true
		}
	case now < s.restUntil.Load():
		return view, head, false
	}
	if view, head, ok = s.newest(ctx, gr, one); ok && read.Mode == services.NotOlderThan {
		ok = head.Revision >= read.Revision // a revision of the future is the store's to wait for
	}
	return view, head, ok
}

// newest returns a copy if it is the state at the revision of the head, which is read for
// that.
func (s *Store) newest(ctx context.Context, gr resource.GroupResource, one *typeCopy) (view changes.View[*services.Object], head services.Head, ok bool) {
	began := monotonic.Now()
	heads, at, err := s.latest.Do(ctx, gr)
	if err != nil {
		if ctx.Err() == nil {
			s.restUntil.Store(monotonic.Now() + int64(restAfterError))
		}
		return view, head, false
	}
	head = heads[at]
	if s.copies.entered(gr, head.Epoch) {
		return view, head, false
	}
	if head.Changed == math.MaxInt64 {
		return view, head, false // only the store can read one of the objects
	}
	if view = one.mirror.Now(); view.Revision() < head.Changed {
		wait := time.NewTimer(lagWait)
		defer wait.Stop()
		for view.Revision() < head.Changed {
			select {
			case <-view.Replaced():
				view = one.mirror.Now()
			case <-wait.C:
				return view, head, false
			case <-ctx.Done():
				return view, head, false
			}
		}
	}
	one.verified.Store(began)
	return view, head, true
}

var _ services.Store = (*Store)(nil)
