package frontdoor

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/warning"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// answer is the ResponseWriter of the pipeline. It records the status, and thereby
// whether the response has started.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Record notes the status of a response that is written to the connection itself.
func (a *answer) Record(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Unwrap supports http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// statusOf returns the status code of the response that was sent or, after an error,
// will be sent.
func statusOf(w http.ResponseWriter, err error) int {
	if err != nil {
		return int(services.AsStatus(err).Code)
	}
	if a, ok := w.(*answer); ok && a.status != 0 {
		return a.status
	}
	return http.StatusOK
}

// requestMetrics holds the front door's own metrics (sections "Other signals" and
// "Deprecation rules").
type requestMetrics struct {
	total      *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	deprecated *prometheus.GaugeVec
	limits     *budget.Counter
}

func newRequestMetrics(registry *prometheus.Registry, openWatches func() float64) *requestMetrics {
	m := &requestMetrics{
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
	m.limits = budget.NewCounter(registry)
	registry.MustRegister(m.total, m.duration, m.deprecated, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_longrunning_requests", Help: "Open watches and connections to nodes, pods and services.",
	}, openWatches))
	return m
}

// observe records a finished request.
func (m *requestMetrics) observe(r *request.Request, a *answer, took time.Duration) {
	var group, version, resource string
	if r.Type != nil {
		group, version, resource = r.Type.Group, r.Type.Version, r.Type.Resource
	}
	m.total.WithLabelValues(r.Verb, group, version, resource, r.SubresourceName(), codeLabel(a.status)).Inc()
	if !r.LongRunning() {
		tracing.Observe(r.Trace.In(context.Background()), m.duration.WithLabelValues(r.Verb, group, version, resource, r.SubresourceName()), took.Seconds())
	}
}

// forget drops the series of a type that is no longer served.
func (m *requestMetrics) forget(t *catalogue.Type) {
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

// signalDeprecation sets the Warning header, metric and audit annotation of a
// deprecated version.
func (d *door) signalDeprecation(w http.ResponseWriter, r *request.Request) {
	dep := r.Type.Deprecation
	warning.Send(w.Header(), r.Type.DeprecationWarning())
	r.Audit.Annotate(d.vocabulary.Qualified("", "deprecated"), "true")
	if dep.Removed != "" {
		r.Audit.Annotate(d.vocabulary.Qualified("", "removed-release"), dep.Removed)
	}
	d.metrics.deprecated.WithLabelValues(r.Type.Group, r.Type.Version, r.Type.Resource, r.SubresourceName(), dep.Removed).Set(1)
}
