package delegate

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/admission/internal/replicas"
)

// metrics are those of all services.
type metrics struct {
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	batches  *prometheus.HistogramVec
	bypassed *prometheus.CounterVec
	refused  prometheus.Counter
	registry *Registry
}

func newMetrics(g *Registry) *metrics {
	return &metrics{registry: g,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portico_admission_service_calls_total",
			Help: "Calls of admission services, by phase, whether the response is enforced, and verdict."}, []string{"service", "phase", "enforced", "verdict"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "portico_admission_service_seconds",
			Help: "Duration of calls of admission services.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"service", "phase"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "portico_admission_service_batch_requests",
			Help: "Number of requests in a batched call of an admission service.", Buckets: prometheus.ExponentialBuckets(2, 2, 7)}, []string{"service"}),
		bypassed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portico_admission_service_bypass_total",
			Help: "Requests to bypass an admission service, by outcome: bypassed or refused."}, []string{"service", "outcome"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "portico_admission_services_file_refused_total",
			Help: "Invalid contents of --admission-services-file that were not used."}),
	}
}

func (m *metrics) observe(a *asked) {
	enforced := "false"
	if a.enforced {
		enforced = "true"
	}
	m.calls.WithLabelValues(a.Name, string(a.phase), enforced, a.result()).Inc()
	m.seconds.WithLabelValues(a.Name, string(a.phase)).Observe(a.took.Seconds())
}

// forget removes what is kept about a service that is gone.
func (m *metrics) forget(service string) {
	by := prometheus.Labels{"service": service}
	m.calls.DeletePartialMatch(by)
	m.seconds.DeletePartialMatch(by)
	m.batches.DeletePartialMatch(by)
	m.bypassed.DeletePartialMatch(by)
}

var (
	available = prometheus.NewDesc("portico_admission_service_available", "1 when a replica of the admission service may be asked.", []string{"service"}, nil)
	circuits  = prometheus.NewDesc("portico_admission_service_breaker", "1 for the state of the admission service's circuit breaker.", []string{"service", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
	to <- available
	to <- circuits
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
	for _, s := range m.registry.Services() {
		state := s.pool.State()
		to <- prometheus.MustNewConstMetric(available, prometheus.GaugeValue, number(state.Ready), s.Name)
		for _, b := range []replicas.Breaker{replicas.Closed, replicas.HalfOpen, replicas.Open} {
			to <- prometheus.MustNewConstMetric(circuits, prometheus.GaugeValue, number(state.Breaker == b), s.Name, string(b))
		}
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.seconds, m.batches, m.bypassed, m.refused}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

var _ prometheus.Collector = (*metrics)(nil)
