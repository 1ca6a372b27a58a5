package writes

import (
	"context"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/races"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/repeats"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/managers"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// writeRequest is a parsed create, update or patch. It is immutable, except that admission
// collects warnings and audit annotations, and that an attempt takes the body.
type writeRequest struct {
	req     *request.Request
	options request.WriteOptions
	form    wire.Form // of the response
	// raw is the undecoded body, and mediaType its media type.
	raw       []byte
	mediaType string
	// body is the decoded body, of the type bodyType; takeBody returns it. It is empty for a
	// patch, which is not an object.
	body     wire.Body
	bodyType *catalogue.Type
	// named is true if the body has a name.
	named bool
	// subject maps the body to the stored object.
	subject typesystem.Subject
	// unconditional is true for requests without a resourceVersion: a conflict with
	// another writer is retried.
	unconditional bool
	// digest identifies repeated requests, see fastPath. A create has none.
	digest    repeats.Digest
	admission *admit.Call
}

// Write serves create, update and patch (sections "Path shapes" and "Dry-run").
func (h *Handlers) Write(rw http.ResponseWriter, r *request.Request) error {
	w, err := h.readRequest(rw, r)
	if err != nil {
		return err
	}
	out, err := h.write(r.Context(), w)
	w.admission.SendNotes(rw.Header())
	if err != nil {
		return err
	}
	status := http.StatusOK
	if out.created {
		status = h.Vocabulary.Behaviour.CreatedStatus
	}
	return applied(reads.Reply{Object: out.object, Form: w.form, Status: status}.Send(rw, r, h.Codec))
}

// readRequest reads the options and the body of a write.
func (h *Handlers) readRequest(rw http.ResponseWriter, r *request.Request) (*writeRequest, error) {
	w := &writeRequest{req: r, mediaType: r.MediaType(), subject: typesystem.SubjectOf(r.Subresource),
		bodyType: r.Engine.BodyType(r.Type, r.Subresource)}
	if err := h.negotiate(w); err != nil {
		return nil, err
	}
	var err error
	if w.options, err = request.ParseWriteOptions(r); err != nil {
		return nil, err
	}
	w.admission = admit.Write(h.Admission, r, w.options)
	if w.raw, err = r.ReadBody(rw); err != nil {
		return nil, err
	}
	if r.Verb != "create" {
		w.digest = digestOf(w)
	}
	if r.Verb == "patch" {
		w.unconditional = true
		if w.mediaType == request.MediaTypeApplyCBOR {
			w.mediaType = fieldmanager.MediaTypeApply
			w.raw, err = h.Codec.Apply(w.raw, r.Charge)
		}
		return w, err
	}
	if w.body, err = h.Codec.Decode(r.Header.Get("Content-Type"), w.raw, w.bodyType, r.Charge); err != nil {
		return nil, err
	}
	if err = strategy.CheckIdentity(w.body.Object, w.bodyType); err != nil {
		return nil, err
	}
	version, name := tree.Text(w.body.Object, "metadata", "resourceVersion"), tree.Text(w.body.Object, "metadata", "name")
	w.unconditional, w.named = version == "" || version == "0", name != ""
	if r.Name == "" {
		r.Audit.Created(name)
	}
	return w, nil
}

// negotiate checks the media types of the request and its response before anything else. That of
// a patch comes first, as in Kubernetes.
func (h *Handlers) negotiate(w *writeRequest) (err error) {
	patch := w.req.Verb == "patch"
	if patch && w.mediaType != request.MediaTypeApplyCBOR {
		if err := w.req.Engine.Merge.CheckMedia(w.bodyType, w.mediaType); err != nil {
			return err
		}
	}
	if w.form, err = h.Codec.Negotiate(w.req.Request, w.bodyType, wire.Object); err != nil || patch {
		return err
	}
	return h.Codec.CheckMedia(w.req.Header.Get("Content-Type"), w.bodyType)
}

// takeBody returns the decoded body, which the caller may modify. The first attempt takes that
// of readRequest; later ones, which are rare, decode it again.
func (h *Handlers) takeBody(w *writeRequest) (body wire.Body, err error) {
	if w.raw == nil { // an object of the front door itself
		return wire.Body{Object: typesystem.Copy(w.body.Object)}, nil
	}
	body, w.body = w.body, wire.Body{}
	if body.Object == nil {
		body, err = h.Codec.Decode(w.req.Header.Get("Content-Type"), w.raw, w.bodyType, nil) // charged by the first
	}
	return body, err
}

// fieldManager returns the field manager of the request.
func (w *writeRequest) fieldManager() string {
	if w.options.Manager != "" {
		return w.options.Manager
	}
	return managers.FromUserAgent(w.req.UserAgent())
}

// applies reports whether the request is a server-side apply, which updates managedFields
// itself.
func (w *writeRequest) applies() bool {
	return w.req.Verb == "patch" && w.mediaType == fieldmanager.MediaTypeApply
}

// mayCreate reports whether the request creates the object if it does not exist: a
// server-side apply does, and an update of some types.
func (w *writeRequest) mayCreate() bool {
	if w.req.Verb == "update" {
		return w.req.Subresource == nil && w.req.Type.Behavior.CreateOnUpdate
	}
	return w.req.Subresource == nil && w.mediaType == fieldmanager.MediaTypeApply
}

// write makes attempts until one does not conflict with another writer. All but the first
// read the newest state.
func (h *Handlers) write(ctx context.Context, w *writeRequest) (out stored, err error) {
	newest := false
	err = services.RetryLost(ctx, w.lost, func() (err error) {
		out, err = h.attempt(ctx, w, newest)
		newest = true
		return err
	})
	if races.Lost(err) && !services.IsConflict(err) && ctx.Err() != nil { // no time is left for another attempt
		err = ctx.Err()
	}
	return out, err
}

// lost reports whether an attempt failed only because of another writer, so that the next
// one may succeed. For a create that includes a generated name that is taken.
func (w *writeRequest) lost(err error) bool {
	switch {
	case races.Lost(err):
		return true
	case services.IsReason(err, services.ReasonAlreadyExists):
		return w.req.Verb == "create" && !w.named || w.req.Verb == "patch" || w.req.Verb == "update"
	}
	return false
}

// applied returns the error of a response to a write that the store has made, without
// Retry-After: the client must not repeat the request.
func applied(err error) error {
	s := services.AsStatus(err)
	if s == nil || s.Details == nil || s.Details.RetryAfterSeconds == 0 {
		return err
	}
	final, details := *s, *s.Details
	details.RetryAfterSeconds = 0
	final.Details = &details
	return &final
}
