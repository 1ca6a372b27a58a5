// Package requestmetrics counts and times the requests of a front door. It serves sections
// "Other signals" and "Deprecation rules" of the specification.
package requestmetrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// Metrics are the metrics of requests.
type Metrics struct {
	total      *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	deprecated *prometheus.GaugeVec
	// Limits counts requests that were refused because of their work.
	Limits *budget.Counter
}

// New registers the metrics. openWatches returns the number of long-running requests.
func New(registry *prometheus.Registry, openWatches func() float64) *Metrics {
	m := &Metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and status code.",
		}, []string{"verb", "group", "version", "resource", "subresource", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Time from the first byte of a request to the end of its response, except watches and connections.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"verb", "group", "version", "resource", "subresource"}),
		deprecated: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_requested_deprecated_apis", Help: "1 for each deprecated API that was requested.",
		}, []string{"group", "version", "resource", "subresource", "removed_release"}),
	}
	m.Limits = budget.NewCounter(registry)
	registry.MustRegister(m.total, m.duration, m.deprecated, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_longrunning_requests", Help: "Open watches and connections to nodes, pods and services.",
	}, openWatches))
	return m
}

// Observe records a finished request and the status code of its response.
func (m *Metrics) Observe(r *request.Request, status int, took time.Duration) {
	var group, version, resource string
	if r.Type != nil {
		group, version, resource = r.Type.Group, r.Type.Version, r.Type.Resource
	}
	m.total.WithLabelValues(r.Verb, group, version, resource, r.SubresourceName(), codeLabel(status)).Inc()
	if !r.LongRunning() {
		tracing.Observe(r.Trace.In(context.Background()), m.duration.WithLabelValues(r.Verb, group, version, resource, r.SubresourceName()), took.Seconds())
	}
}

// Forget drops the series of a type that is no longer served.
func (m *Metrics) Forget(t *catalogue.Type) {
	labels := prometheus.Labels{"group": t.Group, "version": t.Version, "resource": t.Resource}
	m.total.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
	m.deprecated.DeletePartialMatch(labels)
}

// codeLabel returns the label of a status code. Codes outside HTTP's range share one.
func codeLabel(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return strconv.Itoa(status)
}

// Deprecated records a request for a deprecated version.
func (m *Metrics) Deprecated(r *request.Request) {
	m.deprecated.WithLabelValues(r.Type.Group, r.Type.Version, r.Type.Resource, r.SubresourceName(), r.Type.Deprecation.Removed).Set(1)
}
