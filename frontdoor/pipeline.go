// Package frontdoor is the service that clients connect to: it authenticates, authorizes and admits every
// request, holds the definitions of all resource types, and reads and writes objects through the store.
//
// Read this file first: it lists the stages that a request passes. The front door is
// stateless: any replica can serve any request. It serves the sections "Endpoints",
// "Errors" and "Authentication" of the specification; each package below names its own.
package frontdoor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations"
	"github.com/portico-platform/portico/frontdoor/internal/http/compression"
	"github.com/portico-platform/portico/frontdoor/internal/http/pace"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/stack"
	"github.com/portico-platform/portico/frontdoor/internal/http/timings"
	"github.com/portico-platform/portico/services"
)

// Stage is one step of the pipeline. It calls the next one or responds itself.
type Stage struct {
	Name string
	Wrap func(next request.Handler) request.Handler
	// Waits is true for a stage that may wait for something. It has a separate span in the trace of a request.
	Waits bool
}

// stages returns the stages of the pipeline, outermost first.
func (d *door) stages() []Stage {
	return []Stage{
		// Turns errors and panics of all later stages into a Status, and counts requests.
		{Name: "recovered", Wrap: d.recovered},
		// Sets the headers for browsers, also of errors, and answers their preflight
		// requests, which have no credentials.
		{Name: "shared", Wrap: d.browsers.Set},
		// Serves the files of the console and the documentation, which need no credentials.
		{Name: "static", Wrap: d.console.Pages},
		// From here on every request is in the audit log, refused ones included.
		{Name: "audited", Wrap: d.audit.Audited},
		// Parses the path. Unknown paths continue to authorization, so that
		// unauthorized callers cannot probe for existence.
		{Name: "identified", Wrap: d.identified},
		// Refuses upgrades and writes that a page of another origin makes a browser send.
		{Name: "guarded", Wrap: d.browsers.Guarded},
		// Begins the trace of a sampled request, unless that depends on the caller.
		{Name: "traced", Wrap: d.traced},
		// Sets the deadline of all calls to other services. Only watches and proxied
		// connections may take longer.
		{Name: "bounded", Wrap: d.bounded},
		// Requests for deprecated versions get a Warning header, whatever the response.
		{Name: "signalled", Wrap: d.signalled},
		// Answers health checks without credentials, also while authn and authz are unavailable.
		{Name: "probed", Wrap: d.access.Probed},
		// Identifies the caller. No later stage runs without a user.
		{Name: "authenticated", Wrap: d.access.Authenticated, Waits: true},
		// A browser authenticates by a certificate whichever page has caused the request.
		{Name: "ambient", Wrap: d.browsers.Ambient},
		// Continues the trace of a caller who may request that.
		{Name: "joined", Wrap: d.joined},
		// The rules of the audit policy depend on the caller, before impersonation.
		{Name: "matched", Wrap: d.audit.Matched},
		// Only an authenticated caller may impersonate. Later stages see the impersonated user.
		{Name: "impersonated", Wrap: d.access.Impersonated, Waits: true},
		// Records the times of the later stages for a user who asks and may have them.
		{Name: "timed", Wrap: (&timings.Timings{Tracer: d.tracer, Allow: d.access.Allow, Path: operations.Root + "/timings"}).Timed},
		// May this user do this? Decided without reading the object, so a denial reveals nothing.
		{Name: "authorized", Wrap: d.access.Authorized, Waits: true},
		// Only authorized callers may send a body. While it arrives it holds memory but no seat.
		{Name: "received", Wrap: d.access.Received, Waits: true},
		// Limits concurrent requests, fairly between users. A watch returns its seat
		// once its response has started.
		{Name: "limited", Wrap: d.access.Limited, Waits: true},
		// With permitted=true: which namespaces may this user read? Costly: needs a seat.
		{Name: "permitted", Wrap: d.access.Permitted, Waits: true},
		// A long-running request ends when its caller may no longer make it.
		{Name: "registered", Wrap: d.access.Registered},
	}
}

// pipeline wraps the dispatcher in the stages, for clients and for other front doors.
func (d *door) pipeline() (clients, frontDoors http.Handler) {
	handle := request.Handler(d.dispatch)
	for _, stage := range slices.Backward(d.stages()) {
		handle = d.spanned(stage, handle)
	}
	return request.Handlers(func(w http.ResponseWriter, r *http.Request, f *request.Forwarded) {
		stack.Grow(r.Method)
		x := &exchange{}
		d.pacer.Begin(&x.Exchange, w, r)
		x.Request.Request, x.Request.Exchange, x.Forwarded = r, &x.Exchange, f
		if d.draining.Load() || r.ProtoMajor == 2 && d.goawayChance > 0 && rand.Float64() < d.goawayChance {
			w.Header().Set("Connection", "close") // for HTTP/2 the server turns it into a GOAWAY
		}
		out := d.compressor.Wrap(&x.Exchange, r)
		_ = handle(out, &x.Request)
		_ = out.Close() // the client may have disconnected
		x.Memory.Release()
		x.Exchange.End(r)
	})
}

// exchange holds the state of a request and its response in one allocation.
type exchange struct {
	request.Request
	pace.Exchange
}

// dispatch calls the handler of the request.
func (d *door) dispatch(w http.ResponseWriter, r *request.Request) error {
	if r.Plain != nil {
		return r.Plain(w, r)
	}
	for _, of := range []func(*request.Request) request.Handler{d.actions.Of, d.components.Of, d.connections.Of} {
		if handle := of(r); handle != nil {
			return handle(w, r)
		}
	}
	if r.Type.Virtual {
		return d.review.Review(w, r)
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

// recovered writes errors of later stages as a Status, and turns a panic into an
// InternalError so that the process survives.
func (d *door) recovered(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) (err error) {
		started := time.Now()
		a := &answer{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // the identity is the point
					panic(p)
				}
				d.log.ErrorContext(r.Trace.In(r.Context()), "panic while serving", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				err = errors.New("the server panicked while serving this request")
			}
			if err != nil {
				d.metrics.Limits.Count(err)
				d.renderError(a, r, err)
			}
			d.metrics.Observe(r, a.status, time.Since(started))
		}()
		return next(a, r)
	}
}

// maxErrorStatus is the highest HTTP error status (RFC 9110 section 15).
const maxErrorStatus = 599

// renderError writes an error as a Status. If the response has started it closes the connection instead, so
// that the client does not take a truncated response for a complete one.
func (d *door) renderError(a *answer, r *request.Request, err error) {
	if a.status != 0 && sent(a) {
		if r.Context().Err() == nil {
			d.log.WarnContext(r.Trace.In(r.Context()), "response truncated", "path", r.URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	err = r.Named(err)
	status := services.AsStatus(err)
	if status.Code < http.StatusBadRequest || status.Code > maxErrorStatus {
		// Not an HTTP error status: writing it would close the connection.
		err = fmt.Errorf("a component returned the status code %d: %v", status.Code, err) //nolint:errorlint // AsStatus must not find its code
		status = services.AsStatus(err)
	}
	if status.Code >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.log.WarnContext(r.Trace.In(r.Context()), "request failed", "verb", r.Verb, "path", r.URL.Path, "code", status.Code, "error", err)
	}
	d.codec.WriteStatus(a, r.Request, err)
}

// sent reports whether a part of the response has been sent. Until then an error can replace it.
func sent(a *answer) bool {
	held, ok := a.ResponseWriter.(*compression.Writer)
	return !ok || held.Sent()
}

// identified parses the path into a resource, a document or a health check (section "Path shapes").
func (d *door) identified(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if !knownMethod(r.Method) {
			r.Verb = "other" // unknown methods share one label
			return request.NoMethod()
		}
		r.Verb = strings.ToLower(r.Method) // of a path that is no resource, or is refused
		isResource, err := r.Identify(d.types.Load().engine)
		if err != nil {
			return err
		}
		if !isResource {
			r.Plain, r.Health = d.plain, health(r.URL.Path)
		}
		d.extensions.Route(r)
		d.forwarding.Route(r)
		return next(w, r)
	}
}

// knownMethod reports whether HTTP defines the method. A client can invent any number
// of others, which must not become verbs or metric labels.
func knownMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return true
	}
	return false
}

// bounded ends a request with a Timeout (504) when it takes longer than --request-timeout
// or the client's timeout parameter allow.
func (d *door) bounded(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.LongRunning() {
			return next(w, r)
		}
		patience, err := r.Timeout(d.requestTimeout)
		if err != nil {
			return err
		}
		unbounded := r.Request
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer func() {
			cancel()
			r.Request = unbounded // whose context shows whether the client is still there
		}()
		r.Request = r.WithContext(ctx)
		if r.Exchange != nil {
			r.Exchange.Within(patience)
		}
		return next(w, r)
	}
}

// signalled adds the warning, metric and audit annotation for requests of deprecated
// versions (section "Other signals").
func (d *door) signalled(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Type != nil && r.Type.Deprecation != nil {
			d.signalDeprecation(w, r)
		}
		return next(w, r)
	}
}
