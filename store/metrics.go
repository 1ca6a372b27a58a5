package store

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/store/internal/mirror"
)

// metrics holds the store's own metrics.
type metrics struct {
	etcd  *prometheus.HistogramVec
	lists *prometheus.CounterVec
	// refused counts requests by operation: read or write.
	refused  *prometheus.CounterVec
	registry prometheus.Registerer
}

func newMetrics(r prometheus.Registerer, m *mirror.Mirror) *metrics {
	gauge := func(name, help string, value func(mirror.Status) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "portico", Subsystem: "store", Name: name, Help: help},
			func() float64 { return value(m.Status()) })
	}
	out := &metrics{
		registry: r,
		etcd: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "portico", Subsystem: "store", Name: "etcd_request_duration_seconds",
			Help:    "Latency of requests to etcd by operation and outcome.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation", "outcome"}),
		lists: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "portico", Subsystem: "store", Name: "list_pages_total",
			Help: "List pages served, by source: memory or etcd's history.",
		}, []string{"source"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "portico", Subsystem: "store", Name: "refused_requests_total",
			Help: "Requests refused because etcd was unavailable, by operation: read or write.",
		}, []string{"operation"}),
	}
	r.MustRegister(out.etcd, out.lists, out.refused, newUnreadableMetric(m),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "portico", Subsystem: "store", Name: "etcd_up",
			Help: "1 while etcd responds, 0 while requests that need it are refused."}, func() float64 {
			if m.Contact().Err() != nil {
				return 0
			}
			return 1
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "portico", Subsystem: "store", Name: "etcd_losses_total",
			Help: "How often etcd has stopped responding."}, func() float64 { return float64(m.Contact().Losses()) }),
		gauge("mirror_objects", "Objects held in memory.", func(s mirror.Status) float64 { return float64(s.Objects) }),
		gauge("mirror_bytes", "Bytes of the objects held in memory, as they are encoded.", func(s mirror.Status) float64 { return float64(s.Bytes) }),
		gauge("mirror_revision", "Revision that the mirror has reached.", func(s mirror.Status) float64 { return float64(s.Revision) }),
		gauge("mirror_snapshots", "Snapshots held for the following pages of lists.", func(s mirror.Status) float64 { return float64(s.Pins) }),
		gauge("mirror_loads", "Complete loads of the mirror since the start.", func(s mirror.Status) float64 { return float64(s.Loads) }),
	)
	return out
}

// observe registers the metric of the alarms.
func (m *metrics) observe(a *alarms) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "portico", Subsystem: "store", Name: "etcd_alarms", Help: "Active alarms of etcd.",
	}, a.count))
}

// timeEtcd starts timing a request to etcd, which is a step of the trace of ctx; calling
// the result ends it.
func (m *metrics) timeEtcd(ctx context.Context, operation string) (context.Context, func(error)) {
	start := time.Now()
	traced, span := tracing.StartCall(ctx, "etcd", operation)
	return traced, func(err error) {
		span.End(err)
		outcome := "ok"
		if err != nil {
			outcome = "error"
		}
		tracing.Observe(traced, m.etcd.WithLabelValues(operation, outcome), time.Since(start).Seconds())
	}
}
