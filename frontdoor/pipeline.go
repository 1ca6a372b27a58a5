// Package frontdoor is the service that clients talk to: it authenticates,
// impersonates, authorizes and admits every request, holds all knowledge of
// resource types, and reads and writes objects through the store.
//
// This file is the one to read first: it is the way of a request. The front door
// keeps no state that another replica would miss. It serves the sections
// "Endpoints", "Errors" and "Authentication" of the specification; each package
// below names its own.
package frontdoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/compression"
	"github.com/portico-platform/portico/frontdoor/internal/http/pace"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
)

// Stage is one step of the way; it calls the next one or answers itself.
type Stage struct {
	Name string
	Wrap func(next request.Handler) request.Handler
}

// stages is the way of a request, outermost first.
func (d *door) stages() []Stage {
	return []Stage{
		// Errors and panics of everything below become one Status, and are counted.
		{"recovered", d.recovered},
		// The path says what the request is about. One that is not served goes on all
		// the same: what there is and what not, only those are told who may ask.
		{"identified", d.identified},
		// Calls to other services wait for those that are away: not for ever. Only
		// watches may take long.
		{"bounded", d.bounded},
		// From here on whatever happens is on record, refusals too.
		{"audited", d.audited},
		// Who asks for a version that is on its way out is told, whatever the answer.
		{"signalled", d.signalled},
		// How the process is, those are told who need not say who they are, also when
		// nobody is there to find out.
		{"probed", d.access.Probed},
		// Who is it? Nothing below trusts a request without an answer.
		{"authenticated", d.access.Authenticated},
		// Only an authenticated caller may act as somebody else; everything below
		// sees that somebody.
		{"impersonated", d.access.Impersonated},
		// May this user do this? The last stage that knows nothing of the object.
		{"authorized", d.access.Authorized},
		// Whoever may ask may send a body; nothing but their own memory waits for it.
		{"received", d.access.Received},
		// A fair share per user of what does the work. A watch gives its seat back once
		// it is under way.
		{"limited", d.access.Limited},
	}
}

// pipeline joins the stages around the handlers.
func (d *door) pipeline() http.Handler {
	handle := d.dispatch
	stages := d.stages()
	for i := len(stages) - 1; i >= 0; i-- {
		handle = stages[i].Wrap(handle)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{}
		d.pacer.Begin(&x.Exchange, w, r)
		x.Request.Request, x.Request.Exchange = r, &x.Exchange
		if d.draining.Load() {
			w.Header().Set("Connection", "close") // for HTTP/2 the server makes it a GOAWAY
		}
		out := d.compressor.Wrap(&x.Exchange, r)
		_ = handle(out, &x.Request)
		_ = out.Close() // a client that has gone needs no answer
		x.Memory.Release()
		x.Exchange.End(r)
	})
}

// exchange is what a request and its answer need, allocated at once.
type exchange struct {
	request.Request
	pace.Exchange
}

// dispatch calls what does the thing that the request asks for.
func (d *door) dispatch(w http.ResponseWriter, r *request.Request) error {
	if r.Plain != nil {
		return r.Plain(w, r)
	}
	for _, of := range []func(*request.Request) request.Handler{d.actions.Of, d.components.Of} {
		if handle := of(r); handle != nil {
			return handle(w, r)
		}
	}
	switch {
	case r.Type.Virtual:
		return d.review.Review(w, r)
	case r.Subresource != nil && r.Subresource.Connect:
		return d.actions.Connect(w, r)
	}
	switch r.Verb {
	case "get":
		return d.reads.Get(w, r)
	case "list":
		return d.reads.List(w, r)
	case "watch":
		return d.reads.Watch(w, r)
	case "create", "update", "patch":
		return d.writes.Write(w, r)
	case "delete":
		return d.writes.Delete(w, r)
	case "deletecollection":
		return d.writes.DeleteCollection(w, r)
	}
	return request.NoMethod()
}

// recovered renders what the stages below return, and turns a panic into an
// InternalError instead of a lost process.
func (d *door) recovered(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) (err error) {
		started := time.Now()
		a := &answer{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // the identity is the point
					panic(p)
				}
				d.log.Error("panic while serving", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				err = errors.New("the server panicked while serving this request")
			}
			if err != nil {
				d.metrics.limits.Count(err)
				d.renderError(a, r, err)
			}
			d.metrics.observe(r, a, time.Since(started))
		}()
		return next(a, r)
	}
}

// mostCode is the last status code of HTTP that means an error (RFC 9110 section 15).
const mostCode = 599

// renderError writes an error as a Status, unless an answer is already under way:
// then the connection is cut, so that the client does not take half for whole.
func (d *door) renderError(a *answer, r *request.Request, err error) {
	if a.status != 0 && sent(a) {
		if r.Context().Err() == nil {
			d.log.Warn("answer cut short", "path", r.URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	status := services.AsStatus(err)
	if status.Code < http.StatusBadRequest || status.Code > mostCode {
		// No HTTP status of an error: writing it would cut the connection.
		status = services.AsStatus(fmt.Errorf("a part of the service answered with the code %d: %v", status.Code, err)) //nolint:errorlint // its code is the problem
	}
	if status.Code >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.log.Warn("request failed", "verb", r.Verb, "path", r.URL.Path, "code", status.Code, "error", err)
	}
	wire.WriteStatus(a, r.Request, d.vocabulary, status)
}

// sent reports whether a part of an answer has left: until then another one can
// take its place.
func sent(a *answer) bool {
	held, ok := a.ResponseWriter.(*compression.Writer)
	return !ok || held.Sent()
}

// identified says what the path is about: a resource, a document or a health check
// (section "Path shapes").
func (d *door) identified(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if !knownMethod(r.Method) {
			r.Verb = "other" // whatever the client calls it
			return request.NoMethod()
		}
		isResource, err := r.Identify(d.types.Load().engine)
		if err != nil {
			return err
		}
		if !isResource {
			r.Plain, r.Health = d.plain(r.Request)
			r.Verb = strings.ToLower(r.Method)
		}
		return next(w, r)
	}
}

// knownMethod reports whether HTTP itself defines the method. Others, which a client
// could make up without end, are no verbs, and no labels of metrics.
func knownMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return true
	}
	return false
}

// bounded ends a request that takes too long, or longer than its client will wait, with
// a Timeout (504).
func (d *door) bounded(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Verb == "watch" || r.Subresource != nil && r.Subresource.Connect {
			return next(w, r)
		}
		patience, err := r.Timeout(d.requestTimeout)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r.Request = r.WithContext(ctx)
		if r.Exchange != nil {
			r.Exchange.Within(patience)
		}
		return next(w, r)
	}
}

// audited gives the request its record and writes it when the request is over.
func (d *door) audited(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		received := time.Now()
		r.Audit = &audit.Record{ID: audit.ID(r.Header.Get("Audit-Id"))}
		w.Header().Set("Audit-Id", r.Audit.ID)
		w.Header().Set("Cache-Control", "no-cache, private")
		err := next(w, r)
		if d.auditLog != nil {
			d.auditLog.Write(audit.Outcome{Record: r.Audit, Request: r.Request, Verb: r.Verb, Caller: r.Caller, User: r.User,
				Object: objectRef(r), Received: received, Status: statusOf(w, err)})
		}
		return err
	}
}

// signalled tells the client, the metrics and the audit record that the request
// uses a version that is on its way out (section "Other signals").
func (d *door) signalled(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Type != nil && r.Type.Deprecation != nil {
			d.signalDeprecation(w, r)
		}
		return next(w, r)
	}
}
