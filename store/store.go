package store

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/resource"
)

// headsPatience is how long heads of types in separate clusters are waited for, so that these do not delay the
// heads of other types.
const headsPatience = 100 * time.Millisecond

// Config configures a Store.
type Config struct {
	// Client is the connection to the etcd cluster of all types without an override.
	Client    *clientv3.Client
	Overrides []etcd.Override
	// Values encrypts what is stored; nil for no encryption.
	Values  *atrest.Values
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// EventTTL is how long an Event is stored after it was written; 0 for ever.
	EventTTL time.Duration
	// FutureWait is how long a read waits for a future revision; zero selects the
	// default.
	FutureWait time.Duration
	// SettleWithin bounds the search for the outcome of a write whose response from
	// etcd was lost; zero selects the default.
	SettleWithin time.Duration
}

// Store implements services.Store over etcd: each type is stored in one cluster. Run keeps it
// current.
type Store struct {
	main *cluster
	// apart are the clusters of overrides, and of has them by type.
	apart []*cluster
	of    map[resource.GroupResource]*cluster
}

// New returns a Store. The caller must call Run, and wait for Ready.
func New(c Config) *Store {
	if c.FutureWait == 0 {
		c.FutureWait = defaultFutureWait
	}
	labelled := func(name string) prometheus.Registerer {
		return prometheus.WrapRegistererWith(prometheus.Labels{"etcd": name}, c.Metrics)
	}
	s := &Store{main: newCluster(c, "", c.Client, labelled("main")), of: map[resource.GroupResource]*cluster{}}
	for _, o := range c.Overrides {
		one := newCluster(c, o.Name, o.Client, labelled(o.Name))
		s.apart = append(s.apart, one)
		for _, gr := range o.Types {
			s.of[gr] = one
		}
	}
	return s
}

// clusterOf returns the cluster that stores a type.
func (s *Store) clusterOf(gr resource.GroupResource) *cluster {
	if one, ok := s.of[gr]; ok {
		return one
	}
	return s.main
}

// Run follows etcd until ctx ends. It must be called once.
func (s *Store) Run(ctx context.Context) error {
	var others sync.WaitGroup
	defer others.Wait()
	for _, one := range s.apart {
		others.Go(func() { one.run(ctx) })
	}
	s.main.run(ctx)
	return nil
}

// Ready returns a channel that is closed when the store has loaded all objects but those of
// overrides: until these are loaded, requests for them return Unavailable (503).
func (s *Store) Ready() <-chan struct{} { return s.main.mirror.Filled() }

// Get implements services.Reader.
func (s *Store) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	return s.clusterOf(r.Key.GroupResource).Get(ctx, r)
}

// List implements services.Reader.
func (s *Store) List(ctx context.Context, r services.ListRequest) (services.Page, error) {
	if r.WithUnreadable && r.GroupResource == (resource.GroupResource{}) {
		return s.unreadable(ctx, r.Limit)
	}
	return s.clusterOf(r.GroupResource).List(ctx, r)
}

// Revision implements services.Reader.
func (s *Store) Revision(ctx context.Context, of resource.GroupResource) (int64, error) {
	return s.clusterOf(of).Revision(ctx)
}

// Heads implements services.HeadReader. While the cluster of an override does not respond, the heads
// of its types are those of an unknown change.
func (s *Store) Heads(ctx context.Context, types []resource.GroupResource) ([]services.Head, error) {
	heads := make([]services.Head, len(types))
	positions := map[*cluster][]int{}
	for i, gr := range types {
		one := s.clusterOf(gr)
		positions[one] = append(positions[one], i)
	}
	var all sync.WaitGroup
	var failed error
	for one, at := range positions {
		if one == s.main || len(positions) == 1 {
			all.Go(func() { failed = one.headsAt(ctx, types, at, heads) })
			continue
		}
		all.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, headsPatience)
			defer cancel()
			if one.headsAt(bounded, types, at, heads) != nil {
				for _, i := range at {
					heads[i] = services.Head{Changed: math.MaxInt64, Epoch: one.mirror.Epoch().ID}
				}
			}
		})
	}
	all.Wait()
	return heads, failed
}

// Create implements services.Store.
func (s *Store) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	if err := s.together(r.Key, r.Requires); err != nil {
		return services.Object{}, err
	}
	return s.clusterOf(r.Key.GroupResource).Create(ctx, r)
}

// Update implements services.Store.
func (s *Store) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	if err := s.together(r.Key, r.Requires); err != nil {
		return services.Object{}, err
	}
	return s.clusterOf(r.Key.GroupResource).Update(ctx, r)
}

// Delete implements services.Store.
func (s *Store) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	return s.clusterOf(r.Key.GroupResource).Delete(ctx, r)
}

// together returns BadRequest (400) if a write requires an object of another cluster: no transaction
// spans two.
func (s *Store) together(key resource.Key, requires []services.Requirement) error {
	for _, r := range requires {
		if s.clusterOf(r.Key.GroupResource) != s.clusterOf(key.GroupResource) {
			return services.BadRequest("%s: the requirement %s is stored in another etcd", key, r.Key)
		}
	}
	return nil
}

var (
	_ services.Store      = (*Store)(nil)
	_ services.HeadReader = (*Store)(nil)
)
