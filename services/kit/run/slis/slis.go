// Package slis keeps the outcomes of health checks as metrics, for the path /metrics/slis. It
// runs no checks. It serves "Health endpoints" of the specification, as Kubernetes does since 1.26.
package slis

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/portico-platform/portico/services/release"
)

// Path is where the outcomes are served.
const Path = "/metrics/slis"

var since, _ = release.Of("1.26")

// Served reports whether a release serves the path.
func Served(r release.Release) bool { return !r.Before(since) }

// Outcomes are the outcomes of the health checks of a process. A nil *Outcomes keeps nothing.
type Outcomes struct {
	last  *prometheus.GaugeVec
	total *prometheus.CounterVec
	pages http.Handler
}

// New returns Outcomes without any. The process starts now.
func New() *Outcomes {
	o := &Outcomes{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubernetes_healthcheck",
			Help: "Whether a health check passed when it was last run for an endpoint: 1 or 0."}, []string{"name", "type"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubernetes_healthchecks_total",
			Help: "Runs of a health check for an endpoint, by outcome."}, []string{"name", "type", "status"}),
	}
	started := prometheus.NewGauge(prometheus.GaugeOpts{Name: "process_start_time_seconds", Help: "Start time of the process since unix epoch in seconds."})
	started.SetToCurrentTime()
	registry := prometheus.NewRegistry()
	registry.MustRegister(o.last, o.total, started)
	o.pages = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return o
}

// Observe keeps the outcome of a check that was run for an endpoint, such as readyz.
func (o *Outcomes) Observe(check, endpoint string, err error) {
	if o == nil {
		return
	}
	passed, status := 1.0, "success"
	if err != nil {
		passed, status = 0, "error"
	}
	o.last.WithLabelValues(check, endpoint).Set(passed)
	o.total.WithLabelValues(check, endpoint, status).Inc()
}

// ServeHTTP responds with the outcomes in the text format of Prometheus.
func (o *Outcomes) ServeHTTP(w http.ResponseWriter, r *http.Request) { o.pages.ServeHTTP(w, r) }
