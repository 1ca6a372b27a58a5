// Package frontdoor is the service that clients talk to: it authenticates,
// impersonates, authorizes and admits every request, holds all knowledge of
// resource types, and reads and writes objects through the store.
//
// This file is the one to read first: it is the way of a request. The front door
// keeps no state that another replica would miss. It serves the sections
// "Endpoints", "Errors" and "Authentication" of the specification; each file
// names its own.
package frontdoor

import (
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
)

// Handler answers a request or returns the error to answer with. One place
// renders errors: recovered, the outermost stage.
type Handler func(w http.ResponseWriter, r *Request) error

// Stage is one step of the way; it calls the next one or answers itself.
type Stage struct {
	Name string
	Wrap func(next Handler) Handler
}

// stages is the way of a request, outermost first.
func (d *door) stages() []Stage {
	return []Stage{
		// Errors and panics of everything below become one Status, and are counted.
		{"recovered", d.recovered},
		// The path says what the request is about; an unknown one stops here, before
		// it costs anything.
		{"identified", d.identified},
		// From here on whatever happens is on record, refusals too.
		{"audited", d.audited},
		// Who is it? Nothing below trusts a request without an answer.
		{"authenticated", d.authenticated},
		// Only an authenticated caller may act as somebody else; everything below
		// sees that somebody.
		{"impersonated", d.impersonated},
		// A fair share per user, before the dear stages; long-running watches do not
		// count once they are answered.
		{"limited", d.limited},
		// May this user do this? The last stage that knows nothing of the object.
		{"authorized", d.authorized},
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
		_ = handle(w, &Request{Request: r})
	})
}

// dispatch calls the short function that does what the request asks for.
func (d *door) dispatch(w http.ResponseWriter, r *Request) error {
	switch {
	case r.plain != nil:
		return r.plain(w, r)
	case r.Type.Virtual:
		return d.review(w, r)
	case r.Subresource != nil && r.Subresource.Connect:
		return d.connect(w, r)
	}
	switch r.Verb {
	case "get":
		return d.get(w, r)
	case "list":
		return d.list(w, r)
	case "watch":
		return d.watch(w, r)
	case "create", "update", "patch":
		return d.write(w, r)
	case "delete":
		return d.delete(w, r)
	case "deletecollection":
		return d.deleteCollection(w, r)
	}
	return errMethod()
}

// recovered renders what the stages below return, and turns a panic into an
// InternalError instead of a lost process.
func (d *door) recovered(next Handler) Handler {
	return func(w http.ResponseWriter, r *Request) (err error) {
		started := time.Now()
		answer := &answer{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // the identity is the point
					panic(p)
				}
				d.log.Error("panic while serving", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				err = services.AsStatus(errors.New("the server panicked while serving this request"))
			}
			if err != nil {
				d.renderError(answer, r, err)
			}
			d.metrics.observe(r, answer, time.Since(started))
		}()
		return next(answer, r)
	}
}

// renderError writes an error as a Status, unless an answer is already under way:
// then the connection is cut, so that the client does not take half for whole.
func (d *door) renderError(w *answer, r *Request, err error) {
	if w.status != 0 {
		if r.Context().Err() == nil {
			d.log.Warn("answer cut short", "path", r.URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	status := services.AsStatus(err)
	if status.Code >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.log.Warn("request failed", "verb", r.Verb, "path", r.URL.Path, "code", status.Code, "error", err)
	}
	wire.WriteStatus(w, r.Request, d.vocabulary, status)
}

// identified says what the path is about (section "Path shapes"). An unknown path
// or type is 404, a method that it does not serve 405.
func (d *door) identified(next Handler) Handler {
	return func(w http.ResponseWriter, r *Request) error {
		r.Query = r.URL.Query()
		p, isResource := parsePath(r.URL.EscapedPath())
		if !isResource {
			if r.plain = d.plain(r.Request); r.plain == nil {
				return errNoPath()
			}
			r.Verb = strings.ToLower(r.Method)
			return next(w, r)
		}
		t, ok := d.types.Lookup(p.group, p.version, p.resource)
		if !ok || p.namespace != "" && !t.Namespaced || p.name != "" && t.Namespaced && p.namespace == "" && !p.watch {
			return errNoPath()
		}
		r.Type, r.Namespace, r.Name, r.Subpath = t, p.namespace, p.name, p.subpath
		r.Verb = p.verb(r.Method, r.Query)
		if p.subresource != "" {
			if r.Subresource = t.Subresources[p.subresource]; r.Subresource == nil {
				return errNoPath()
			}
		}
		if !served(r) {
			return errMethod()
		}
		return next(w, r)
	}
}

// served tells whether the type, or its subresource, has the verb on this path.
func served(r *Request) bool {
	if r.Subresource != nil {
		return r.Verb != "" && (r.Subresource.Connect || slices.Contains(r.Subresource.Verbs, r.Verb))
	}
	if r.Type.Namespaced && r.Namespace == "" && (r.Verb == "create" || r.Verb == "deletecollection") {
		return false
	}
	if r.Verb == "watch" && r.Name != "" {
		return r.Type.Can("watch")
	}
	return r.Verb != "" && r.Type.Can(r.Verb)
}
