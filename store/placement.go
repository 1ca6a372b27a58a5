package store

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/kit/run"
)

// misplaced returns how many objects a cluster holds of types that it does not store, for example
// because their override was added later. They are not served.
func (s *Store) misplaced(one *cluster) int64 {
	snapshot := one.mirror.Snapshot()
	var of, own int64
	for gr, stores := range s.of {
		n := snapshot.CountAfter(gr.Path(), gr.Path())
		if of += n; stores == one {
			own += n
		}
	}
	if one == s.main {
		return of
	}
	return int64(one.mirror.Status().Objects) - own
}

// watchPlacement registers the metric of misplaced objects, and logs a warning if there are some when
// a cluster has been loaded.
func (s *Store) watchPlacement(n *run.Node) {
	for _, one := range append([]*cluster{s.main}, s.apart...) {
		one.metrics.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "portico", Subsystem: "store", Name: "misplaced_objects",
			Help: "Objects that are not served, because --etcd-servers-overrides assigns their type to another etcd.",
		}, func() float64 { return float64(s.misplaced(one)) }))
		n.Go("placement", func(ctx context.Context) error {
			select {
			case <-one.mirror.Filled():
				if objects := s.misplaced(one); objects > 0 {
					one.log.Warn("objects are not served, because --etcd-servers-overrides assigns their type to another etcd", "objects", objects)
				}
			case <-ctx.Done():
			}
			return nil
		})
	}
}
