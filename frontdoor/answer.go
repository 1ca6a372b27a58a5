package frontdoor

import (
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/warning"
	"github.com/portico-platform/portico/services"
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

// statusOf returns the status code of the response that was sent or, after an error, will be sent.
func statusOf(w http.ResponseWriter, err error) int {
	if err != nil {
		return int(services.AsStatus(err).Code)
	}
	if a, ok := w.(*answer); ok && a.status != 0 {
		return a.status
	}
	return http.StatusOK
}

// signalDeprecation sets the Warning header, metric and audit annotation of a deprecated version.
func (d *door) signalDeprecation(w http.ResponseWriter, r *request.Request) {
	dep := r.Type.Deprecation
	warning.Send(w.Header(), r.Type.DeprecationWarning())
	r.Audit.Annotate(d.vocabulary.DeprecationAnnotation("deprecated"), "true")
	if dep.Removed != "" {
		r.Audit.Annotate(d.vocabulary.DeprecationAnnotation("removed-release"), dep.Removed)
	}
	d.metrics.Deprecated(r)
}
