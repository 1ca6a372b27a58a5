package writes

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/races"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/repairs"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/frontdoor/internal/wire/layout"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/tree"
)

// An attempt at a write has five steps. Each has its own result, which later steps read. A step may modify the
// tree of the previous result, which no other code reads afterwards; it never modifies current.
//
//	current    the stored object                        stored JSON; tree in the request's version
//	desired    the object that the client requests      tree: the body, or the patched current object
//	admitted   after defaulting, the service's own      tree and JSON in the request's version,
//	           changes and mutating admission           with managedFields
//	validated  accepted by the type's rules and         the same
//	           validating admission
//	stored     the result of the write                  JSON in the stored version, with resourceVersion

// current is the state that an attempt begins with. If no object exists, object and tree
// are empty.
type current struct {
	object services.Object // as stored
	tree   map[string]any  // decoded, in the version of the request
	// cached is true for a state that may not be the newest.
	cached bool
	now    time.Time
	// unreadable is the revision of a stored value that cannot be read and that the request replaces; 0 if there is
	// none. The object then does not exist here, and its UID is that of the request.
	unreadable int64
	uid        string
	// versioned is the resourceVersion that the body of a create has; 0 for none.
	versioned uint64
	// unversioned is the error of a change without the resourceVersion that its type requires.
	unversioned error
}

func (c *current) exists() bool { return c.object.Revision != 0 }

// desired is the object that the client requests.
type desired struct {
	tree map[string]any
	// strict holds the errors of strict decoding: duplicate and unknown fields.
	strict []string
	// json is the body that the tree was read from; nil for a patch and for other formats.
	json []byte
}

// admitted is the object that will be stored if it is valid.
type admitted struct {
	tree map[string]any
	json []byte // the tree encoded
	// shown is the object that mutating admission received, and warned the warnings that
	// had been collected before. shown is nil if admission changed the object.
	shown  []byte
	warned []string
	// review is the admission review, whose validating phase follows.
	review *admit.Review
	// ruled is true if the rules of the type have been applied to it.
	ruled bool
}

// validated is an object that is accepted.
type validated struct {
	admitted
	// requires is what must be stored in the transaction that stores the object.
	requires []services.Requirement
}

// stored is the outcome of an attempt.
type stored struct {
	object  services.Object
	created bool
	// swapped is true if the result comes from a compare-and-swap or create in the store.
	swapped bool
}

// attempt runs the steps of a write once. It returns races.Err if the result is discarded,
// see fastPath.
func (h *Handlers) attempt(ctx context.Context, w *writeRequest, newest bool) (out stored, err error) {
	c := &current{now: time.Now(), cached: !newest && mayUseCache(w)}
	c.object, err = traced(ctx, "current", func(ctx context.Context) (services.Object, error) { return h.readCurrent(ctx, w, c.cached) })
	if services.IsReason(err, services.ReasonUnreadable) {
		c.cached = false
		if c.object, err = h.readCurrent(ctx, w, false); err != nil {
			c.object, c.unreadable, err = h.repairer().Replaces(w.req, err)
		}
	}
	if err == nil {
		out, err = h.advance(ctx, w, c)
	}
	switch valid, failed := h.counts(ctx, w, c, result{out, err}); {
	case failed != nil && services.IsReason(err, services.ReasonServiceUnavailable):
		return out, err
	case failed != nil:
		return stored{}, failed
	case !valid:
		return stored{}, races.Err
	}
	return out, err
}

// advance runs the steps that follow the read of the current state.
func (h *Handlers) advance(ctx context.Context, w *writeRequest, c *current) (out stored, err error) {
	same, content, err := h.changesNothing(ctx, w, c)
	switch {
	case err != nil:
		return out, err
	case same:
		return h.rewrite(ctx, w, c, content)
	}
	if c.exists() {
		if c.tree, err = w.req.Engine.DecodeStored(ctx, c.object, w.req.Type); err != nil {
			return out, err
		}
	}
	d, err := traced(ctx, "desired", func(ctx context.Context) (desired, error) { return h.desire(ctx, w, c) })
	if err != nil {
		return out, err
	}
	a, err := traced(ctx, "admitted", func(ctx context.Context) (admitted, error) { return h.admit(ctx, w, c, d) })
	if err == nil {
		var v validated
		if v, err = traced(ctx, "validated", func(ctx context.Context) (validated, error) { return h.validate(ctx, w, c, a) }); err == nil {
			out, err = traced(ctx, "stored", func(ctx context.Context) (stored, error) { return h.commit(ctx, w, c, v) })
		}
	}
	if err != nil && (!out.swapped || refused(err)) {
		h.refund(ctx, w, a)
	}
	return out, err
}

// refund gives back what quotas have been charged for an object that is not stored.
func (h *Handlers) refund(ctx context.Context, w *writeRequest, a admitted) {
	if a.review == nil {
		return
	}
	if err := a.review.Refund(ctx); err != nil {
		h.Log.WarnContext(ctx, "a charge to quotas was not given back; they are counted again later", "namespace", w.req.Namespace, "error", err)
	}
}

// traced runs a step of a write, with a separate span in the trace of the request.
func traced[Result any](ctx context.Context, name string, take func(context.Context) (Result, error)) (Result, error) {
	ctx, span := tracing.Start(ctx, name)
	result, err := take(ctx)
	span.End(err)
	return result, err
}

// readCurrent reads the object that an update or patch changes. If it does not exist,
// readCurrent returns NotFound (404), or an empty object if the request creates missing
// objects and the user is authorized to create it.
func (h *Handlers) readCurrent(ctx context.Context, w *writeRequest, cached bool) (services.Object, error) {
	if w.req.Verb == "create" {
		return services.Object{}, nil
	}
	read := services.Read{Mode: services.MostRecent}
	if cached {
		read.Mode = services.AnyRevision
	}
	object, err := h.Store.Get(ctx, services.GetRequest{Key: w.req.Key(), Read: read})
	if services.IsReason(err, services.ReasonNotFound) && w.mayCreate() {
		create := w.req.Attributes()
		create.Verb = "create"
		if err := h.Allow(w.req, create); err != nil || !w.req.Type.Going {
			return services.Object{}, err
		}
		return services.Object{}, services.Forbidden(w.req.Type.Group, w.req.Type.Resource, w.req.Name, request.TerminatingType)
	}
	return object, err
}

// desire combines the request body with the current object.
func (h *Handlers) desire(ctx context.Context, w *writeRequest, c *current) (d desired, err error) {
	if w.req.Verb == "patch" {
		d, err = h.patched(ctx, w, c)
	} else {
		var body wire.Body
		body, err = h.takeBody(w)
		d = desired{body.Object, body.Strict, body.JSON}
	}
	if err != nil {
		return d, err
	}
	if w.req.Verb == "create" {
		return d, w.checkCreate(c, d.tree)
	}
	if c.uid, err = repairs.TakeIdentity(w.req, c.unreadable, d.tree); err != nil {
		return d, err
	}
	if w.req.Verb == "update" || c.exists() {
		if d.tree, err = w.put(ctx, c, d); err != nil {
			return d, err
		}
	}
	return d, w.checkUpdate(c, d.tree)
}

// put combines a body with the current object. A body of the subresource's own kind, such
// as Scale, is validated and defaulted first, since afterwards only some of its fields are
// left.
func (w *writeRequest) put(ctx context.Context, c *current, d desired) (map[string]any, error) {
	if t := w.bodyType; t != w.req.Type {
		if w.req.Verb == "update" {
			if err := strategy.CheckName(w.req.Name, strategy.Metadata(d.tree)); err != nil {
				return nil, err
			}
		}
		warnings, err := w.req.Engine.Schemas.PrepareBody(ctx, schema.Body{Definition: t.Definition, Version: t.Version, Kind: t.Kind},
			d.tree, w.options.FieldValidation, d.strict...)
		w.admission.Warn(warnings...)
		if err != nil {
			return nil, err
		}
	}
	next, err := w.subject.Put(c.tree, d.tree)
	if err == nil && w.applies() && w.req.Engine.OwnsAppliedScale(w.req.Subresource) {
		err = w.req.Engine.ApplyScale(ctx, w.patchRequest(w.req.Type, c.tree), w.req.Subresource, next)
	}
	return next, err
}

// admit sets defaults and the fields that the service controls, and runs mutating
// admission. Field ownership is recorded before the last two, whose changes have no field
// manager. Admission receives the object without managedFields, so that the rest is
// encoded once for both admission and the store.
func (h *Handlers) admit(ctx context.Context, w *writeRequest, c *current, d desired) (a admitted, err error) {
	s := strategyOf(w, c)
	if !c.exists() {
		if s.Replaces(d.tree) { // which has to fit the schema, too
			if err := h.prepare(ctx, w, c, d); err != nil {
				return a, err
			}
			d.strict = nil
		}
		s.Identify(d.tree)
		if c.uid != "" {
			strategy.Metadata(d.tree)["uid"] = c.uid
		}
	}
	if err := cmp.Or(h.prepare(ctx, w, c, d), c.unversioned); err != nil {
		return a, err
	}
	w.dedupOwnerReferences(d.tree, w.req.Verb == "patch")
	h.trackFields(w, c, d.tree)
	established := h.beforeEstablished(w, c, d.tree)
	if c.exists() {
		s.PrepareUpdate(d.tree, c.tree)
		s.Count(d.tree, c.tree)
	} else {
		s.PrepareCreate(d.tree)
	}
	managedFields := typesystem.TakeManagedFields(d.tree)
	if a, err = h.mutate(ctx, w, c, d); err != nil {
		return a, err
	}
	a.review.Settled(a.json, func() []services.OwnerType { return w.req.Engine.OwnerTypes(a.tree) })
	if managedFields != nil {
		strategy.Metadata(a.tree)["managedFields"] = managedFields
	}
	h.trackEstablished(w, established, a.tree)
	fieldmanager.Settle(c.tree, a.tree)
	a.json, err = tree.WithManagedFields(a.json, strategy.Metadata(a.tree)["managedFields"])
	return a, err
}

// validate applies the validation rules of the type and runs validating admission.
func (h *Handlers) validate(ctx context.Context, w *writeRequest, c *current, a admitted) (v validated, err error) {
	if !a.ruled {
		if err := h.applyRules(ctx, w, c, a); err != nil {
			return v, err
		}
	}
	shown, err := w.shown(a)
	if err != nil {
		return v, err
	}
	if w.showsTree(a.review) {
		shown.Tree = a.tree
	}
	return validated{admitted: a}, a.review.Validate(ctx, shown)
}

// review starts the admission review of the object.
func (w *writeRequest) review(ctx context.Context, c *current, object map[string]any) (*admit.Review, error) {
	r := w.req
	subject := admit.Subject{Operation: services.OperationUpdate, Type: w.bodyType, Namespace: r.Namespace, Name: r.Name}
	if !c.exists() {
		subject.Operation, subject.Repairs = services.OperationCreate, c.unreadable != 0
		subject.Name = tree.Text(object, "metadata", "name")
		return w.admission.Review(subject), nil
	}
	if !w.admission.Asks() {
		return w.admission.Review(subject), nil
	}
	old, err := r.Engine.View(ctx, c.object, r.Type)
	if err == nil && w.bodyType != r.Type {
		old.JSON, err = typesystem.ShowJSON(w.subject, old.JSON)
	}
	subject.Old = old.JSON
	return w.admission.Review(subject), err
}

// shown is the object as admission sees it: a subresource's own kind as that.
func (w *writeRequest) shown(a admitted) (admit.Object, error) {
	if w.bodyType == w.req.Type {
		return admit.Object{JSON: a.json, Owners: w.req.Engine.OwnerTypes(a.tree)}, nil
	}
	shown, err := w.subject.Show(a.tree)
	if err != nil {
		return admit.Object{}, err
	}
	raw, err := tree.Encode(shown)
	return admit.Object{JSON: raw}, err
}

// encoded returns an object with its JSON. It returns Invalid (422) for an object that is
// nested too deeply, and RequestEntityTooLarge (413) for one with too many values.
func (w *writeRequest) encoded(object map[string]any) (admitted, error) {
	raw, err := tree.EncodeNew(object)
	var deep tree.DepthError
	if errors.As(err, &deep) {
		name := tree.Text(object, "metadata", "name")
		err = limit.Exceeded(limit.Depth, services.Invalid(w.req.Type.Group, w.req.Type.Kind, name, []services.StatusCause{{Reason: services.CauseInvalid,
			Message: "Invalid value: the object " + deep.Error()}}))
	}
	if err == nil {
		err = request.CheckStored(raw)
	}
	return admitted{tree: object, json: raw}, err
}

// prepare drops or reports unknown fields, drops the fields of disabled feature gates, and
// sets defaults.
func (h *Handlers) prepare(ctx context.Context, w *writeRequest, c *current, d desired) error {
	change := schema.Change{Type: w.req.Type, Object: d.tree, Old: c.tree, Patched: w.req.Verb == "patch", Applied: w.applies()}
	if d.json != nil && !w.req.Type.Custom { // of custom objects, duplicate fields are reported first
		change.Order = func(findings []string) { layout.InOrder(findings, d.json) }
	}
	warnings, err := w.req.Engine.Schemas.PrepareChange(ctx, change, w.options.FieldValidation, d.strict...)
	w.admission.Warn(warnings...)
	w.req.Engine.DropFeatures(w.req.Type, d.tree, c.tree)
	if err == nil && w.req.Type.Behavior.DefinesTypes {
		err = crd.Mistyped(d.tree, h.Vocabulary)
	}
	var malformed schema.Malformed
	if w.req.Verb == "patch" && !w.applies() && errors.As(err, &malformed) {
		return w.unfit(d.tree, malformed.Why)
	}
	return err
}

// dedupOwnerReferences drops duplicate ownerReferences and warns the client. The warning for a
// patch is always the one for those that are there after admission, as in Kubernetes.
func (w *writeRequest) dedupOwnerReferences(object map[string]any, afterAdmission bool) {
	if repeated := strategy.DedupOwnerReferences(object); repeated != nil {
		w.admission.Warn(strategy.RepeatedOwners(repeated, afterAdmission))
	}
}

// trackFields updates the managedFields for the request's field manager.
func (h *Handlers) trackFields(w *writeRequest, c *current, object map[string]any) {
	if w.applies() {
		return
	}
	r := w.req
	err := r.Engine.Merge.Track(fieldmanager.Change{Type: r.Type, Live: c.tree, New: object, Manager: w.fieldManager(), Subresource: r.SubresourceName()})
	if err != nil { // the managedFields stay unchanged; the write itself is valid
		h.Log.Debug("field owners were not recorded", "resource", r.Type.Key, "name", r.Name, "error", err)
	}
}

// beforeEstablished returns the status of a definition before the front door sets its parts of it: what the
// client has written in a write of the status, otherwise the stored one; nil for other types.
func (h *Handlers) beforeEstablished(w *writeRequest, c *current, object map[string]any) map[string]any {
	if !w.req.Type.Behavior.DefinesTypes {
		return nil
	}
	status := tree.Child(c.tree, "status")
	if w.req.Subresource != nil {
		status = tree.Child(object, "status")
	}
	if status == nil {
		return map[string]any{}
	}
	return typesystem.Copy(status)
}

// trackEstablished records the front door as the manager of what it has set in the status of a definition,
// except for the stored versions, which have no owner.
func (h *Handlers) trackEstablished(w *writeRequest, before, object map[string]any) {
	status := tree.Child(object, "status")
	if before == nil || status == nil {
		return
	}
	for part, empty := range map[string]any{"acceptedNames": map[string]any{}, "conditions": []any{}} {
		if before[part] == nil { // as in Kubernetes, where a new definition has them
			before[part] = empty
		}
	}
	before["storedVersions"] = status["storedVersions"]
	live := maps.Clone(object)
	live["status"] = before
	r := w.req
	err := r.Engine.Merge.Track(fieldmanager.Change{Type: r.Type, Live: live, New: object, Manager: h.ownManager(), Subresource: "status"})
	if err != nil {
		h.Log.Debug("field owners were not recorded", "resource", r.Type.Key, "name", r.Name, "error", err)
	}
}

// strategyOf returns the strategy of the type for one write.
func strategyOf(w *writeRequest, c *current) strategy.Write {
	s := w.req.Engine.Strategy(w.req.Type)
	s.Subresource, s.Namespace, s.User, s.Now = w.req.SubresourceName(), w.req.Namespace, w.req.User, c.now
	return s
}
