package inflight

import "github.com/prometheus/client_golang/prometheus"

// Register registers metrics of limiters, by the kind of their requests, and of the
// memory of bodies.
func Register(registry *prometheus.Registry, limiters map[string]*Limiter, bytes *Bytes) {
	for kind, l := range limiters {
		labels := prometheus.Labels{"request_kind": kind}
		gauge := func(name, help string, value func() int) {
			registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
				l.mu.Lock()
				defer l.mu.Unlock()
				return float64(value())
			}))
		}
		gauge("apiserver_current_inflight_requests", "Requests that are being served.", func() int { return l.taken + int(l.exempt.Load()) })
		gauge("apiserver_current_inqueue_requests", "Requests that wait for a seat.", func() int { return l.waiting })
		gauge("apiserver_stalled_requests", "Requests without a seat whose clients are slow to read.", func() int { return l.stalled })
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "apiserver_dropped_requests_total",
			Help: "Requests refused because no seat became free in time.", ConstLabels: labels}, func() float64 { return float64(l.refused.Load()) }))
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "apiserver_request_bytes_held",
		Help: "Bytes of request bodies and stalled responses in memory."}, func() float64 {
		bytes.mu.Lock()
		defer bytes.mu.Unlock()
		return float64(bytes.held)
	}))
}
