// Package auditing is the stages of the pipeline that log requests: it decides what an event
// contains. It serves "Other signals" of the specification.
package auditing

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// Auditor logs the requests of a front door.
type Auditor struct {
	Log *audit.Log // nil if audit logging is off
	// Recent takes every request but answered health checks of anonymous clients; nil takes
	// none.
	Recent *Recent
	// Policy returns the current policy; nil without --audit-policy-file.
	Policy func() *audit.Policy
	// Text returns a body of any kind as JSON, and StatusText a Status.
	Text       func(contentType string, body []byte) ([]byte, error)
	StatusText func(*services.Status) ([]byte, error)
	// StatusOf returns the status code of a response or error.
	StatusOf func(w http.ResponseWriter, err error) int
}

// Audited creates the audit record of the request and writes it when the request is
// done, and when the response of a connection or, with a policy, of a watch has begun.
func (a *Auditor) Audited(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		r.Audit = &audit.Record{ID: audit.ID(r.Header.Get("Audit-Id")), Received: time.Now()}
		w.Header().Set("Audit-Id", r.Audit.ID)
		w.Header().Set("Cache-Control", "no-cache, private")
		r.Started = func(status int) {
			if a.Policy != nil || r.Connects() {
				a.write(r, audit.Outcome{Stage: audit.ResponseStarted, Status: status})
			}
		}
		returned := false
		defer func() {
			if !returned {
				a.write(r, audit.Outcome{Stage: audit.Panic, Status: http.StatusInternalServerError})
			}
		}()
		err := next(w, r)
		returned = true
		a.complete(w, r, err)
		return err
	}
}

// Matched finds the rule of the policy for the request, and logs that it was received.
func (a *Auditor) Matched(next request.Handler) request.Handler {
	if a.Log == nil || a.Policy == nil {
		return next
	}
	return func(w http.ResponseWriter, r *request.Request) error {
		if !a.write(r, audit.Outcome{Stage: audit.RequestReceived}) {
			return errors.New("failed to store audit event")
		}
		if r.Audit.Rule.LogsResponse() && r.Type != nil && !r.LongRunning() {
			r.Audit.Response = &audit.Capture{ResponseWriter: w}
			w = r.Audit.Response
		}
		return next(w, r)
	}
}

// write adds what is known of the request to an outcome, and logs it. It reports whether the request may
// continue.
func (a *Auditor) write(r *request.Request, o audit.Outcome) bool {
	if a.Log == nil {
		return true
	}
	if a.Policy != nil && r.Audit.Rule == nil {
		attributes := r.Attributes()
		attributes.User = r.Caller // impersonation does not change the rule
		r.Audit.Rule = a.Policy().Rule(attributes)
	}
	if !r.Audit.Rule.Logs(o.Stage) {
		return true
	}
	o.Record, o.Request, o.Verb, o.Caller, o.Object = r.Audit, r.Request, r.Verb, r.Caller, objectRef(r)
	if r.Impersonated { // which may be the caller with other groups
		o.Impersonated, o.Constraint = &r.User, r.Constraint
	}
	if rule := r.Audit.Rule; rule.LogsRequest() && o.Stage != audit.RequestReceived && r.Type != nil {
		o.Bodies.Request = o.Bodies.Add(rule, r.Received(), func(body []byte) ([]byte, error) {
			return a.Text(r.Header.Get("Content-Type"), body)
		})
	}
	return a.Log.Write(o)
}

// complete logs the end of a request.
func (a *Auditor) complete(w http.ResponseWriter, r *request.Request, err error) {
	o := audit.Outcome{Stage: audit.ResponseComplete, Status: a.StatusOf(w, err)}
	if a.Recent != nil && (r.Caller.Name != "" || o.Status >= http.StatusBadRequest) {
		a.Recent.add(r, o.Status)
	}
	if a.Log == nil {
		return
	}
	if a.Policy != nil && err != nil {
		o.Failure = services.AsStatus(err)
	}
	if kept := r.Audit.Response; kept != nil {
		body, media := kept.Body(), w.Header().Get("Content-Type")
		if o.Failure != nil {
			media = ""
			body, _ = a.StatusText(o.Failure) // strings and numbers always encode
		}
		o.Bodies.Response = o.Bodies.Add(r.Audit.Rule, body, func(body []byte) ([]byte, error) { return a.Text(media, body) })
	}
	a.write(r, o)
}

// objectRef names the object of a request for the audit record.
func objectRef(r *request.Request) *audit.ObjectRef {
	if r.Type == nil {
		a := r.Attributes() // of an extension, or of a type that does not exist
		if a.Resource == "" {
			return nil
		}
		return &audit.ObjectRef{Resource: a.Resource, Namespace: r.Namespace, Name: r.Name, APIGroup: a.Group, APIVersion: a.Version, Subresource: a.Subresource}
	}
	return &audit.ObjectRef{Resource: r.Type.Resource, Namespace: r.Namespace, Name: cmp.Or(r.Name, r.Audit.Name()),
		APIGroup: r.Type.Group, APIVersion: r.Type.Version, Subresource: r.SubresourceName()}
}
