package writes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/tree"
)

// writing is a create, update or patch on its way: what the client sent, and the
// type of object that it sent.
type writing struct {
	*request.Request
	options request.WriteOptions
	form    wire.Form
	raw     []byte // the body; that of a patch is all there is
	body    wire.Body
	// sent stands for all of it, mediaType for the raw body's form.
	sent      digest
	mediaType string
	// subject is how the body maps onto the stored object.
	subject typesystem.Subject
	// unconditional is true when another writer's change is no conflict for the
	// client: the request names no resourceVersion.
	unconditional bool
	created       bool
	// newest is true when only the store's newest state will do.
	newest bool
	// admission collects the warnings, too.
	admission *admit.Call
}

// Write serves create, update and patch (sections "Path shapes" and "Dry-run"):
// one loop, from the top again when another writer was faster and the client did
// not ask for a certain version.
func (h *Handlers) Write(w http.ResponseWriter, r *request.Request) error {
	x, err := h.readWriting(w, r)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		object, err := h.attempt(r.Context(), x)
		if err != nil && x.mayRetry(err) && attempt < writeAttempts && r.Context().Err() == nil {
			continue
		}
		x.admission.SendWarnings(w.Header())
		if err != nil {
			return err
		}
		return applied(h.answerWrite(w, x, object))
	}
}

// writeAttempts bounds the loop; every round lost means that somebody else's
// write went through.
const writeAttempts = 100

// mayRetry reports whether another writer's change, and nothing else, was in the way.
func (x *writing) mayRetry(err error) bool {
	switch {
	case errors.Is(err, errRaced):
		return true
	case services.IsReason(err, services.ReasonAlreadyExists):
		name, _ := strategy.Metadata(x.body.Object)["name"].(string)
		return x.Verb == "create" && name == "" || x.Verb == "patch" || x.Verb == "update"
	}
	return false
}

// errRaced is a compare-and-swap that lost although the client set no condition.
var errRaced = errors.New("another writer was faster")

// attempt goes once through the stages of a write.
func (h *Handlers) attempt(ctx context.Context, x *writing) (services.Object, error) {
	c := &change{writing: x, now: time.Now()}
	object, err := h.pass(ctx, c)
	if h.stands(ctx, c, err) {
		return object, err
	}
	x.newest = true
	return services.Object{}, errRaced
}

func (h *Handlers) pass(ctx context.Context, c *change) (services.Object, error) {
	if err := h.readCurrent(ctx, c); err != nil {
		return services.Object{}, err
	}
	if done, err := h.repeat(ctx, c); done || err != nil {
		return c.current, err
	}
	for _, stage := range []func(context.Context, *change) error{
		h.decodeCurrent, // the stored object, in the version of the request
		h.makeNext,      // what the client wants it to be
		h.complete,      // what the service decides, defaults, and admission's changes
		h.check,         // schema rules, then admission's word
	} {
		if err := stage(ctx, c); err != nil {
			return services.Object{}, err
		}
	}
	return h.commit(ctx, c)
}

// change is one attempt at a write.
type change struct {
	*writing
	now     time.Time
	current services.Object // zero when there is none
	live    map[string]any  // current, decoded, in the version of the request; nil when there is none
	next    map[string]any
	nextRaw []byte // next as JSON, in the version of the request
	// fromCache tells that current is what was at hand, and swapped that the store has
	// found it to be the newest.
	fromCache, swapped bool
	// shown is what to remember of a change that turns out to be none; nil when it may
	// be one the next time.
	shown *outcome
}

func (c *change) exists() bool { return c.current.Revision != 0 }

func (c *change) strategy() strategy.Write {
	s := c.Engine.Strategy(c.Type)
	s.Subresource, s.Namespace, s.User, s.Now = c.SubresourceName(), c.Namespace, c.User, c.now
	return s
}

// makeNext joins what the client sent with the current object.
func (h *Handlers) makeNext(ctx context.Context, c *change) error {
	var err error
	switch c.Verb {
	case "create":
		c.next = typesystem.Copy(c.body.Object)
		return c.checkCreate()
	case "update":
		c.next, err = c.put(ctx, typesystem.Copy(c.body.Object))
	case "patch":
		c.next, err = h.patched(ctx, c)
	}
	if err != nil {
		return err
	}
	return c.checkUpdate()
}

// complete lets the service and mutating admission finish the object. Who owns which
// field is decided before these two add to what the client wants.
func (h *Handlers) complete(ctx context.Context, c *change) error {
	s := c.strategy()
	if !c.exists() {
		s.Identify(c.next)
	}
	if err := h.prepare(ctx, c); err != nil {
		return err
	}
	c.dedupOwnerReferences(false)
	h.trackFields(c)
	if c.exists() {
		s.PrepareUpdate(c.next, c.live)
		s.Count(c.next, c.live)
	} else {
		s.PrepareCreate(c.next)
	}
	owners := typesystem.TakeManagedFields(c.next)
	if err := h.mutate(ctx, c); err != nil {
		return err
	}
	return h.recordManagedFields(c, owners)
}

// mutate encodes the object and lets admission change it.
func (h *Handlers) mutate(ctx context.Context, c *change) (err error) {
	if c.nextRaw, err = c.encode(); err != nil {
		return err
	}
	c.shown = &outcome{engine: c.Engine, mutated: c.nextRaw, warnings: c.admission.Warnings()}
	review, err := c.review(ctx)
	if err != nil {
		return err
	}
	mutated, err := review.Mutate(ctx, c.admitted())
	if err != nil || mutated == nil {
		return err
	}
	c.shown = nil
	if err := h.takeMutated(c, mutated); err != nil {
		return err
	}
	c.dedupOwnerReferences(true)
	if err := h.prepare(ctx, c); err != nil {
		return err
	}
	c.strategy().Settle(c.next, c.live)
	if c.exists() {
		c.strategy().Count(c.next, c.live)
	}
	c.nextRaw, err = c.encode()
	return err
}

// encode returns the next object as JSON. One that is nested too deeply is Invalid (422).
func (c *change) encode() ([]byte, error) {
	raw, err := tree.EncodeNew(c.next)
	var deep tree.DepthError
	if errors.As(err, &deep) {
		name, _ := strategy.Metadata(c.next)["name"].(string)
		return nil, limit.Exceeded(limit.Depth, services.Invalid(c.Type.Group, c.Type.Kind, name, []services.StatusCause{{Reason: services.CauseInvalid,
			Message: "Invalid value: the object " + deep.Error()}}))
	}
	return raw, err
}

// check validates the final object.
func (h *Handlers) check(ctx context.Context, c *change) error {
	if err := h.validate(ctx, c); err != nil {
		return err
	}
	review, err := c.review(ctx)
	if err != nil {
		return err
	}
	return review.Validate(ctx, c.admitted())
}

// readWriting reads the options and the body of a write.
func (h *Handlers) readWriting(w http.ResponseWriter, r *request.Request) (*writing, error) {
	x := &writing{Request: r, mediaType: r.MediaType()}
	var err error
	if x.options, err = request.ParseWriteOptions(r); err != nil {
		return nil, err
	}
	if x.form, err = h.Codec.Negotiate(r.Request, r.Engine.BodyType(r.Type, r.Subresource), wire.Object); err != nil {
		return nil, err
	}
	if x.raw, err = r.ReadBody(w); err != nil {
		return nil, err
	}
	x.admission = admit.Write(h.Admission, r, x.options)
	x.subject = typesystem.SubjectOf(r.Subresource)
	x.newest = !x.mayGlance()
	if r.Verb != "create" {
		x.sent = x.digest()
	}
	if r.Verb == "patch" {
		x.unconditional = true
		return x, nil
	}
	if x.body, err = h.Codec.Decode(r.Header.Get("Content-Type"), x.raw, r.Engine.BodyType(r.Type, r.Subresource)); err != nil {
		return nil, err
	}
	version, _ := strategy.Metadata(x.body.Object)["resourceVersion"].(string)
	x.unconditional = version == "" || version == "0"
	return x, nil
}

// answerWrite sends the object as it is now.
func (h *Handlers) answerWrite(w http.ResponseWriter, x *writing, object services.Object) error {
	status := http.StatusOK
	if x.created {
		status = h.Vocabulary.Behaviour.CreatedStatus
	}
	return reads.Reply{Object: object, Form: x.form, Status: status}.Send(w, x.Request, h.Codec)
}
