package kms

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// grace is how long a provider that is no longer configured stays open, for the calls that
// began before.
const grace = 2 * time.Minute

// Providers holds the providers of a process. They outlive a change of the configuration
// that does not change them, and so do their seeds. It is a prometheus.Collector.
type Providers struct {
	metrics *metrics
	log     *slog.Logger
	mu      sync.Mutex
	open    map[Spec]*opened
}

type opened struct {
	*Provider
	unused time.Time // since when; zero while it is configured
}

// New returns an empty set.
func New(log *slog.Logger) *Providers {
	return &Providers{metrics: newMetrics(), log: log, open: map[Spec]*opened{}}
}

// Get returns a provider. It does not call the plugin.
func (s *Providers) Get(spec Spec) (*Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.open[spec]; p != nil {
		p.unused = time.Time{}
		return p.Provider, nil
	}
	p, err := newProvider(spec, s.metrics, s.log)
	if err == nil {
		s.open[spec] = &opened{Provider: p}
	}
	return p, err
}

// Poll calls the plugins whose time has come, and closes providers that are no longer used.
// It returns when all calls have returned.
func (s *Providers) Poll(ctx context.Context, used []*Provider) {
	s.closeOthers(used)
	var group sync.WaitGroup
	for _, p := range used {
		if p.due() {
			group.Go(func() { _ = p.Check(ctx) })
		}
	}
	group.Wait()
}

func (s *Providers) closeOthers(used []*Provider) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for spec, p := range s.open {
		switch {
		case slices.Contains(used, p.Provider):
			p.unused = time.Time{}
		case p.unused.IsZero():
			p.unused = time.Now()
		case time.Since(p.unused) > grace:
			_ = p.plugin.conn.Close()
			delete(s.open, spec)
			if !slices.ContainsFunc(used, func(other *Provider) bool { return other.spec.Name == spec.Name }) {
				s.metrics.forget(spec.Name)
			}
		}
	}
}

// Describe implements prometheus.Collector.
func (s *Providers) Describe(to chan<- *prometheus.Desc) {
	s.metrics.each(func(c prometheus.Collector) { c.Describe(to) })
}

// Collect implements prometheus.Collector.
func (s *Providers) Collect(to chan<- prometheus.Metric) {
	s.metrics.each(func(c prometheus.Collector) { c.Collect(to) })
}

// metrics are labelled with the names of providers.
type metrics struct {
	took      *prometheus.HistogramVec
	healthy   *prometheus.GaugeVec
	until     *prometheus.GaugeVec
	rotations *prometheus.CounterVec
}

func newMetrics() *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "portico", Subsystem: "kms", Name: name, Help: help}, []string{"provider"})
	}
	return &metrics{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "portico", Subsystem: "kms", Name: "request_duration_seconds",
			Help: "Duration of calls of KMS plugins.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8)}, []string{"provider", "method", "code"}),
		healthy: gauge("healthy", "1 if the last call of Status succeeded"),
		until:   gauge("seed_expiry_timestamp_seconds", "when writes fail unless Status succeeds before"),
		rotations: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "portico", Subsystem: "kms", Name: "seeds_total",
			Help: "Seeds that the plugin has encrypted: one for each start and change of its key_id."}, []string{"provider"}),
	}
}

func (m *metrics) each(do func(c prometheus.Collector)) {
	for _, c := range []prometheus.Collector{m.took, m.healthy, m.until, m.rotations} {
		do(c)
	}
}

// record shows the result of a call of Status.
func (m *metrics) record(p *Provider, err error) {
	healthy := 0.0
	if err == nil {
		healthy = 1
	}
	m.healthy.WithLabelValues(p.spec.Name).Set(healthy)
	if w := p.writes.Load(); w != nil {
		m.until.WithLabelValues(p.spec.Name).Set(float64(w.until.Unix()))
	}
}

func (m *metrics) forget(provider string) {
	of := prometheus.Labels{"provider": provider}
	m.took.DeletePartialMatch(of)
	m.healthy.DeletePartialMatch(of)
	m.until.DeletePartialMatch(of)
	m.rotations.DeletePartialMatch(of)
}
