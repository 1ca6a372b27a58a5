package frontdoor

import (
	"net/http"
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// traced begins the trace of a request, if it is sampled, and ends it. A request that
// names a span of its client has to wait for joined.
func (d *door) traced(next request.Handler) request.Handler {
	if !d.tracer.Enabled() {
		return next
	}
	return func(w http.ResponseWriter, r *request.Request) (err error) {
		if r.Health {
			return next(w, r)
		}
		origin := tracing.Origin{Client: tracing.FromHeader(r.Header), Began: time.Now()}
		if origin.Client.IsValid() {
			r.Trace = &request.Trace{Origin: origin}
		} else {
			d.begin(r, origin)
		}
		if r.Trace == nil {
			return next(w, r)
		}
		defer func() {
			if root := r.Trace.Root; root.Recording() {
				describe(root, r)
				root.SetInt("http.response.status_code", int64(statusOf(w, err)))
				root.End(err)
			}
		}()
		return next(w, r)
	}
}

// joined begins the trace of a request that names a span of its client, now that the caller is known. Those of
// the administrators are continued when they are sampled; those of others are only linked to, so that no other
// caller has influence on what is sampled and under which ID.
func (d *door) joined(next request.Handler) request.Handler {
	if !d.tracer.Enabled() {
		return next
	}
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Trace != nil && r.Trace.Origin.Client.IsValid() {
			origin := r.Trace.Origin
			origin.Trusted = slices.Contains(r.Caller.Groups, services.GroupMasters)
			d.begin(r, origin)
			tracing.Past(r.Context(), "authenticated", origin.Began)
		}
		return next(w, r)
	}
}

// begin begins the trace of a request, if it is sampled.
func (d *door) begin(r *request.Request, from tracing.Origin) {
	ctx, root := d.tracer.Begin(r.Context(), from)
	if !root.Recording() {
		return
	}
	root.Rename(traceName(r))
	if r.Trace == nil {
		r.Trace = &request.Trace{}
	}
	r.Trace.Root = root
	r.Request = r.WithContext(ctx)
}

// traceName returns the name of the root span, of which there are no more than verbs and types.
func traceName(r *request.Request) string {
	if r.Type == nil {
		return r.Verb + " nonresource"
	}
	name := r.Verb + " " + r.Type.Key.String()
	if r.Subresource != nil {
		name += "/" + r.Subresource.Name
	}
	return name
}

// describe adds what the request is about to its root span.
func describe(root tracing.Span, r *request.Request) {
	root.Set("http.request.method", r.Method)
	root.Set("url.path", r.URL.Path)
	root.Set("portico.namespace", r.Namespace)
	root.Set("portico.name", r.Name)
	if r.Audit != nil {
		root.Set("portico.audit_id", r.Audit.ID)
	}
}

// spanned gives a stage a separate span, which ends when the stage calls the next one.
func (d *door) spanned(s Stage, next request.Handler) request.Handler {
	if !s.Waits {
		return s.Wrap(next)
	}
	wrapped := s.Wrap(func(w http.ResponseWriter, r *request.Request) error {
		r.Leave(nil)
		return next(w, r)
	})
	return func(w http.ResponseWriter, r *request.Request) error {
		r.Enter(s.Name)
		err := wrapped(w, r)
		r.Leave(err)
		return err
	}
}
