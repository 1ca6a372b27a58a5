package writes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// fieldManager returns the field manager of the request.
func (x *writing) fieldManager() string {
	if x.options.Manager != "" {
		return x.options.Manager
	}
	return fieldmanager.ManagerFromUserAgent(x.UserAgent())
}

// checkCreate compares a new object with its path.
func (c *change) checkCreate() error {
	meta := strategy.Metadata(c.next)
	if err := c.checkNamespace(meta); err != nil {
		return err
	}
	if version, _ := meta["resourceVersion"].(string); version != "" && version != "0" {
		return services.BadRequest("resourceVersion should not be set on objects to be created")
	}
	return nil
}

// checkNamespace refuses an object that names another namespace than its path. What is
// in no namespace may name any, and then loses it.
func (c *change) checkNamespace(meta map[string]any) error {
	given, _ := meta["namespace"].(string)
	if c.Type.Namespaced && given != "" && given != c.Namespace {
		return services.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// checkUpdate compares a changed object with its path and with the stored one.
func (c *change) checkUpdate() error {
	meta := strategy.Metadata(c.next)
	if err := c.checkNamespace(meta); err != nil {
		return err
	}
	switch name, _ := meta["name"].(string); {
	case name == "":
		return services.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", c.Name)
	case name != c.Name:
		return services.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", name, c.Name)
	}
	if !c.exists() {
		return c.checkNew(meta)
	}
	if given, _ := meta["uid"].(string); c.Verb == "update" && given != "" && given != c.current.UID {
		return services.Conflict(c.Type.Group, c.Type.Resource, c.Name,
			fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", given, c.current.UID))
	}
	return c.checkVersion(meta)
}

// checkNew refuses a change of a certain object that is gone. Its version counts for
// nothing.
func (c *change) checkNew(meta map[string]any) error {
	uid, _ := meta["uid"].(string)
	if uid == "" {
		return nil
	}
	why := "Precondition failed: UID in precondition: " + uid + ", UID in object meta: "
	if c.applies() {
		why = "uid mismatch: the provided object specified uid " + uid + ", and no existing object was found"
	}
	return services.Conflict(c.Type.Group, c.Type.Resource, c.Name, why)
}

// checkVersion refuses a change that was made on an older object. A patch says so
// only when it sets the version itself.
func (c *change) checkVersion(meta map[string]any) error {
	given, _ := meta["resourceVersion"].(string)
	delete(meta, "resourceVersion")
	current, _ := strategy.Metadata(c.live)["resourceVersion"].(string)
	switch {
	case given == current:
		return nil
	case given != "" && given != "0":
		if _, err := strconv.ParseUint(given, 10, 64); err != nil {
			return services.BadRequest("metadata.resourceVersion: Invalid value: %q: %v", given, err)
		}
	case c.Type.Behavior.RequireResourceVersion:
		return services.Invalid(c.Type.Group, c.Type.Resource, c.Name, []services.StatusCause{{Reason: services.CauseInvalid,
			Field: "metadata.resourceVersion", Message: "Invalid value: 0x0: must be specified for an update"}})
	default:
		return nil
	}
	return services.ConflictModified(c.Type.Group, c.Type.Resource, c.Name)
}

// put joins a body with the current object. A body of the subresource's own kind is
// prepared before, as what is left of it afterwards is a part of the object.
func (c *change) put(ctx context.Context, body map[string]any) (map[string]any, error) {
	if t := c.Engine.BodyType(c.Type, c.Subresource); t != c.Type {
		warnings, err := c.Engine.Schemas.PrepareBody(ctx, schema.Body{Definition: t.Definition, Version: t.Version, Kind: t.Kind},
			body, c.options.FieldValidation, c.body.Strict...)
		c.admission.Warn(warnings...)
		if err != nil {
			return nil, err
		}
	}
	return c.subject.Put(c.live, body)
}

// prepare drops or reports unknown fields and sets defaults.
func (h *Handlers) prepare(ctx context.Context, c *change) error {
	warnings, err := c.Engine.Schemas.Prepare(ctx, c.Type, c.next, c.options.FieldValidation, c.body.Strict...)
	c.admission.Warn(warnings...)
	var malformed schema.Malformed
	if c.Verb == "patch" && !c.applies() && errors.As(err, &malformed) {
		return c.unfit(c.next, malformed.Why)
	}
	return err
}

// dedupOwnerReferences drops owners that are named twice, by the client or by admission, and
// tells the client.
func (c *change) dedupOwnerReferences(mutated bool) {
	repeated := strategy.DedupOwnerReferences(c.next)
	if repeated == nil {
		return
	}
	so := ", which are dropped"
	if mutated {
		so = " after mutating admission happens; API server dedups owner references in 1.20+, " +
			"and may reject such requests as early as 1.24; please fix your requests"
	}
	c.admission.Warn(".metadata.ownerReferences contains duplicate entries" + so + "; duplicate UID(s) observed: " + strings.Join(repeated, ", "))
}

// applies reports whether the request is an apply, which records itself who owns what.
func (c *change) applies() bool {
	return c.Verb == "patch" && c.mediaType == fieldmanager.MediaTypeApply
}

// trackFields records who owns which field.
func (h *Handlers) trackFields(c *change) {
	if c.applies() {
		return
	}
	err := c.Engine.Merge.Track(fieldmanager.Change{Type: c.Type, Live: c.live, New: c.next, Manager: c.fieldManager(), Subresource: c.SubresourceName()})
	if err != nil { // the owners stay as they were; the write itself is sound
		h.Log.Debug("field owners were not recorded", "resource", c.Type.Key, "name", c.Name, "error", err)
	}
}

// recordManagedFields puts the owners into the finished object. An apply that has changed
// nothing after all leaves them as they were.
func (h *Handlers) recordManagedFields(c *change, owners any) (err error) {
	if owners != nil {
		strategy.Metadata(c.next)["managedFields"] = owners
	}
	if c.applies() {
		fieldmanager.Settle(c.live, c.next)
	}
	c.nextRaw, err = typesystem.WithManagedFields(c.nextRaw, strategy.Metadata(c.next)["managedFields"])
	return err
}

// validate applies the rules of the type.
func (h *Handlers) validate(ctx context.Context, c *change) error {
	if err := c.Engine.Schemas.ValidateChange(ctx, schema.Change{Type: c.Type, Subresource: c.SubresourceName(), Object: c.next, Old: c.live}); err != nil {
		return err
	}
	if !c.Type.Behavior.DefinesTypes {
		return nil
	}
	rules := crd.Rules{Vocabulary: h.Vocabulary, Types: c.Engine.Types, Schemas: c.Engine.Schemas}
	if c.Subresource != nil {
		return rules.CheckStatus(c.next)
	}
	return rules.Check(c.next, c.live)
}

// review begins the review of the change by admission.
func (c *change) review(ctx context.Context) (*admit.Review, error) {
	subject := admit.Subject{Operation: services.OperationUpdate, Type: c.Type, Namespace: c.Namespace, Name: c.Name}
	if !c.exists() {
		subject.Operation = services.OperationCreate
		subject.Name, _ = strategy.Metadata(c.next)["name"].(string)
		return c.admission.Review(subject), nil
	}
	old, err := c.Engine.View(ctx, c.current, c.Type)
	subject.Old = old.JSON
	return c.admission.Review(subject), err
}

// admitted is the object as admission sees it.
func (c *change) admitted() admit.Object {
	return admit.Object{JSON: c.nextRaw, Owners: c.Engine.OwnerTypes(c.next)}
}

// store is the last step: a dry-run stops before it. An object that a write makes
// free of its last finalizer is removed.
func (h *Handlers) store(ctx context.Context, c *change) (services.Object, error) {
	content, err := c.Engine.Content(ctx, c.next, c.nextRaw, c.Type)
	if err != nil {
		return services.Object{}, err
	}
	key := c.Key()
	key.Name, _ = strategy.Metadata(c.next)["name"].(string)
	c.created = !c.exists()
	switch {
	case c.options.DryRun:
		return h.pretend(ctx, c, services.Object{Key: key, JSON: content.JSON})
	case !c.exists():
		c.swapped = true
		object, err := h.Store.Create(ctx, services.CreateRequest{Key: key, Content: content})
		if services.IsReason(err, services.ReasonAlreadyExists) {
			return object, cmp.Or(h.taken(ctx, c, key), err)
		}
		return object, err
	case strategy.Finished(c.next):
		c.swapped = true
		object, err := h.Store.Delete(ctx, services.DeleteRequest{Key: key, Revision: c.current.Revision})
		if err == nil { // the client sees what it has made of the object, without the finalizer
			object.JSON = typesystem.WithResourceVersion(content.JSON, c.current.Revision)
		}
		return object, c.raced(err)
	case h.unchanged(c, content):
		h.remember(c)
		return c.current, nil
	}
	c.swapped = true
	object, err := h.Store.Update(ctx, services.UpdateRequest{Key: key, Revision: c.current.Revision, Content: content})
	return object, c.raced(err)
}

// pretend answers a dry-run: the object as it would be, under the version of the
// one that there is.
func (h *Handlers) pretend(ctx context.Context, c *change, object services.Object) (services.Object, error) {
	if c.exists() {
		object.JSON = typesystem.WithResourceVersion(object.JSON, c.current.Revision)
		return object, nil
	}
	return object, h.taken(ctx, c, object.Key)
}

// taken is the AlreadyExists of a create whose name is taken, which also says whether
// the name is about to be free; nil when nobody has it.
func (h *Handlers) taken(ctx context.Context, c *change, key resource.Key) error {
	object, err := h.Store.Get(ctx, services.GetRequest{Key: key})
	switch {
	case services.IsReason(err, services.ReasonNotFound):
		return nil
	case err != nil:
		return err
	}
	exists := services.AlreadyExists(c.Type.Group, c.Type.Resource, key.Name)
	if there, err := c.Engine.DecodeStored(ctx, object, c.Type); err == nil && strategy.Deleting(there) {
		exists.Message = "object is being deleted: " + exists.Message
	}
	return exists
}

// raced turns a lost compare-and-swap into another attempt, where the client set
// no condition of its own.
func (c *change) raced(err error) error {
	if c.unconditional {
		return raced(err)
	}
	return err
}

// unchanged reports whether the write would store what is stored already.
func (h *Handlers) unchanged(c *change, content services.Content) bool {
	return bytes.Equal(typesystem.WithResourceVersion(content.JSON, c.current.Revision), c.current.JSON)
}
