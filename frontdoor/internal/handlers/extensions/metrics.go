package extensions

import "github.com/prometheus/client_golang/prometheus"

// metrics are those of the aggregator of Kubernetes.
type metrics struct {
	handlers *Handlers
	lost     *prometheus.CounterVec
}

func newMetrics(h *Handlers) *metrics {
	return &metrics{handlers: h, lost: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aggregator_unavailable_apiservice_total",
		Help: "How often this front door found an extension of the API to be no longer available, by name and reason."}, []string{"name", "reason"})}
}

var unavailableNow = prometheus.NewDesc("aggregator_unavailable_apiservice",
	"1 while an extension of the API is not available, by name.", []string{"name"}, nil)

// Metrics returns the metrics of all extensions.
func (h *Handlers) Metrics() prometheus.Collector { return h.metrics }

// observe counts an extension that is no longer available.
func (m *metrics) observe(x *extension, now condition) {
	if x.condition.status == "True" && now.status != "True" {
		m.lost.WithLabelValues(x.name, now.reason).Inc()
	}
}

// forget removes what is kept about an extension that is gone.
func (m *metrics) forget(name string) { m.lost.DeletePartialMatch(prometheus.Labels{"name": name}) }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	m.lost.Describe(to)
	to <- unavailableNow
}

// Collect implements prometheus.Collector. It omits extensions that were never checked.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.lost.Collect(to)
	for _, x := range *m.handlers.table.Load() {
		if x.condition.status == "" {
			continue
		}
		value := 1.0
		if x.condition.status == "True" {
			value = 0
		}
		to <- prometheus.MustNewConstMetric(unavailableNow, prometheus.GaugeValue, value, x.name)
	}
}

var _ prometheus.Collector = (*metrics)(nil)
