package inflight

import "github.com/prometheus/client_golang/prometheus"

// Counts are the requests of one kind: those that are served, wait, and are served without a seat,
// and all that have been refused.
type Counts struct{ Served, Waiting, Stalled, Refused int64 }

// Counts returns the counts of a limiter.
func (l *Limiter) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Counts{int64(l.taken) + l.exempt.Load(), int64(l.waiting), int64(l.stalled), l.refused.Load()}
}

// Register registers metrics of requests, by their kind.
func Register(registry *prometheus.Registry, kinds map[string]func() Counts) {
	for kind, counts := range kinds {
		labels := prometheus.Labels{"request_kind": kind}
		gauge := func(name, help string, value func(Counts) int64) {
			registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels},
				func() float64 { return float64(value(counts())) }))
		}
		gauge("apiserver_current_inflight_requests", "Requests that are being served.", func(c Counts) int64 { return c.Served })
		gauge("apiserver_current_inqueue_requests", "Requests that wait for a seat.", func(c Counts) int64 { return c.Waiting })
		gauge("apiserver_stalled_requests", "Requests without a seat whose clients are slow to read.", func(c Counts) int64 { return c.Stalled })
		registry.MustRegister(dropped(kind, func() int64 { return counts().Refused }))
	}
}

// dropped returns the metric of the refused requests of a kind.
func dropped(kind string, count func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "apiserver_dropped_requests_total",
		Help: "Requests refused because no seat became available in time, or because too many watches are open.", ConstLabels: prometheus.Labels{"request_kind": kind}},
		func() float64 { return float64(count()) })
}
