package store

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/mirror"
)

// unreadable returns the objects of all types that cannot be read, at most limit, or pageObjects if it is 0. Remaining
// is the number of others.
func (s *Store) unreadable(ctx context.Context, limit int) (page services.Page, err error) {
	if err := s.main.filled(ctx); err != nil {
		return page, err
	}
	if limit <= 0 {
		limit = pageObjects
	}
	status := s.main.mirror.Snapshot()
	page.Revision, page.Epoch = status.Revision, status.Epoch
	for _, one := range append([]*cluster{s.main}, s.apart...) {
		for _, o := range one.mirror.Unreadable() {
			switch {
			case s.clusterOf(o.Key.GroupResource) != one: // another etcd stores the type
			case len(page.Objects) == limit:
				page.Remaining++
			default:
				page.Objects = append(page.Objects, o)
			}
		}
	}
	return page, nil
}

// observeUnreadable registers the check that names objects that cannot be read. It does not make the process unready: all
// replicas read the same values, and all other objects are served.
func (s *Store) observeUnreadable(n *run.Node) {
	n.Health.Add(run.Check{Name: "store-objects", Partial: true, Probe: func(ctx context.Context) error {
		page, err := s.unreadable(ctx, services.NamedUnreadable)
		if err != nil {
			return err
		}
		return services.NameUnreadable(page)
	}})
}

// unreadableMetric counts the objects of a mirror that cannot be read, by type.
type unreadableMetric struct {
	mirror *mirror.Mirror
	desc   *prometheus.Desc
}

func newUnreadableMetric(m *mirror.Mirror) unreadableMetric {
	return unreadableMetric{m, prometheus.NewDesc("portico_store_unreadable_objects",
		"Objects whose value in etcd cannot be read, by type: it cannot be decrypted, is damaged, or of a later release.", []string{"group", "resource"}, nil)}
}

// Describe implements prometheus.Collector.
func (u unreadableMetric) Describe(to chan<- *prometheus.Desc) { to <- u.desc }

// Collect implements prometheus.Collector.
func (u unreadableMetric) Collect(to chan<- prometheus.Metric) {
	types := u.mirror.UnreadableTypes()
	byName := func(a, b resource.GroupResource) int {
		return slices.Compare([]string{a.Group, a.Resource}, []string{b.Group, b.Resource})
	}
	var before resource.GroupResource
	sum := 0
	for i, gr := range slices.SortedFunc(maps.Keys(types), byName) {
		if i > 0 && byName(before, gr) != 0 {
			u.send(to, before, sum)
			sum = 0
		}
		before, sum = gr, sum+types[gr] // a custom type may have the names of a built-in one
	}
	if sum > 0 {
		u.send(to, before, sum)
	}
}

func (u unreadableMetric) send(to chan<- prometheus.Metric, gr resource.GroupResource, count int) {
	to <- prometheus.MustNewConstMetric(u.desc, prometheus.GaugeValue, float64(count), gr.Group, gr.Resource)
}
