package frontdoor

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/merge"
	"github.com/portico-platform/portico/frontdoor/internal/schema"
	"github.com/portico-platform/portico/frontdoor/internal/strategy"
	"github.com/portico-platform/portico/services"
)

// writeOptions are the parsed query parameters of a write (section "Query
// parameters").
type writeOptions struct {
	dryRun          bool
	manager         string // the parameter fieldManager
	force           bool
	fieldValidation schema.FieldValidation
}

// parseWriteOptions reads the parameters and refuses what is malformed (400 or
// 422), naming the parameter.
func parseWriteOptions(r *Request) (o writeOptions, err error) {
	if o.dryRun, err = parseDryRun(r.Query["dryRun"]); err != nil {
		return o, err
	}
	o.manager = r.Query.Get("fieldManager")
	if err := merge.CheckManager(o.manager); err != nil {
		return o, err
	}
	if o.force, err = boolOption(r.Query, "force"); err != nil {
		return o, err
	}
	o.fieldValidation, err = parseFieldValidation(r.Query.Get("fieldValidation"))
	return o, err
}

// parseFieldValidation reads what becomes of unknown fields; they are warned of
// when the client does not say.
func parseFieldValidation(value string) (schema.FieldValidation, error) {
	switch v := schema.FieldValidation(value); v {
	case "":
		return schema.Warn, nil
	case schema.Ignore, schema.Warn, schema.Strict:
		return v, nil
	}
	return "", services.Invalid("", "Options", "", []services.StatusCause{{Reason: services.CauseNotSupported,
		Field: "fieldValidation", Message: "Unsupported value: " + strconv.Quote(value) + ": supported values: \"Ignore\", \"Strict\", \"Warn\""}})
}

// parseDryRun reads the values of dryRun: All or nothing (section "Dry-run").
func parseDryRun(values []string) (bool, error) {
	for _, v := range values {
		if v != "All" && v != "" {
			return false, services.Invalid("", "Options", "", []services.StatusCause{{Reason: services.CauseNotSupported,
				Field: "dryRun", Message: "Unsupported value: " + strconv.Quote(v) + ": supported values: \"All\""}})
		}
	}
	return len(values) > 0 && values[0] == "All", nil
}

// owner is the field manager of the request.
func (x *writing) owner() string {
	if x.options.manager != "" {
		return x.options.manager
	}
	return merge.ManagerFromUserAgent(x.UserAgent())
}

// mediaType returns a Content-Type without its parameters.
func mediaType(header string) string {
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return media
}

// checkCreate compares a new object with its path.
func (c *change) checkCreate() error {
	meta := strategy.Metadata(c.next)
	if err := c.checkNamespace(meta); err != nil {
		return err
	}
	if version, _ := meta["resourceVersion"].(string); version != "" && version != "0" {
		return services.BadRequest("metadata.resourceVersion: resourceVersion should not be set on objects to be created")
	}
	return nil
}

// checkNamespace refuses an object that names another namespace than its path.
func (c *change) checkNamespace(meta map[string]any) error {
	given, _ := meta["namespace"].(string)
	if given != "" && given != c.Namespace {
		return services.BadRequest("metadata.namespace: the namespace of the provided object does not match the namespace sent on the request")
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
		meta["name"] = c.Name
	case name != c.Name:
		return services.BadRequest("metadata.name: the name of the object (%s) does not match the name on the URL (%s)", name, c.Name)
	}
	if !c.exists() {
		return nil
	}
	if given, _ := meta["uid"].(string); given != "" && given != c.current.UID {
		return services.Conflict(c.Type.Group, c.Type.Resource, c.Name,
			fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", given, c.current.UID))
	}
	return c.checkVersion(meta)
}

// checkVersion refuses a change that was made on an older object. A patch says so
// only when it sets the version itself.
func (c *change) checkVersion(meta map[string]any) error {
	given, _ := meta["resourceVersion"].(string)
	delete(meta, "resourceVersion")
	current, _ := strategy.Metadata(c.live)["resourceVersion"].(string)
	if given == "" || given == "0" || given == current {
		return nil
	}
	return services.ConflictModified(c.Type.Group, c.Type.Resource, c.Name)
}

// checkPatchOptions refuses what a patch cannot have, before the object is read.
func (d *door) checkPatchOptions(x *writing) error {
	if x.mediaType == merge.MediaTypeApply || !x.options.force {
		return nil
	}
	return services.Invalid("", "PatchOptions", "", []services.StatusCause{{Reason: services.CauseForbidden,
		Field: "force", Message: "Forbidden: may not be specified for non-apply patch"}})
}

// patched returns the object with the patch applied to what the path shows of it.
func (d *door) patched(c *change) (map[string]any, error) {
	shown := c.live
	if c.exists() {
		var err error
		if shown, err = c.subject.show(c.live); err != nil {
			return nil, err
		}
	}
	manager := c.options.manager
	if manager == "" && c.mediaType != merge.MediaTypeApply {
		manager = c.owner()
	}
	body, objections, err := d.merge.Patch(merge.PatchRequest{Type: d.bodyType(c.Request), MediaType: c.mediaType, Body: c.patch,
		Current: shown, Manager: manager, Force: c.options.force, Subresource: c.subresourceName()})
	if err != nil {
		return nil, err
	}
	c.body.Strict = objections
	if !c.exists() {
		return body, nil
	}
	return c.subject.put(c.live, body)
}

// prepare drops or reports unknown fields and sets defaults.
func (d *door) prepare(c *change) error {
	warnings, err := d.schemas.Prepare(c.Type, c.next, c.options.fieldValidation, c.body.Strict...)
	c.warnings = append(c.warnings, warnings...)
	return err
}

// trackFields records who owns which field; an apply has done so already.
func (d *door) trackFields(c *change) error {
	if c.Verb == "patch" && c.mediaType == merge.MediaTypeApply {
		return nil
	}
	err := d.merge.Track(merge.Change{Type: c.Type, Live: c.live, New: c.next, Manager: c.owner(), Subresource: c.subresourceName()})
	if err != nil { // the owners stay as they were; the write itself is sound
		d.log.Warn("field owners were not recorded", "resource", c.Type.Key, "name", c.Name, "error", err)
	}
	return nil
}

// validate applies the rules of the type.
func (d *door) validate(c *change) error {
	if c.exists() && strategy.Deleting(c.live) {
		if err := c.checkFinalizers(); err != nil {
			return err
		}
	}
	return d.schemas.Validate(c.Type, c.next, c.live)
}

// checkFinalizers refuses a finalizer that comes when the object is going already
// (section "Two-phase deletion of a resource").
func (c *change) checkFinalizers() error {
	before := map[string]bool{}
	for _, name := range strategy.Finalizers(c.live) {
		before[name] = true
	}
	for _, name := range strategy.Finalizers(c.next) {
		if !before[name] {
			return services.Invalid(c.Type.Group, c.Type.Kind, c.Name, []services.StatusCause{{Reason: services.CauseForbidden,
				Field: "metadata.finalizers", Message: fmt.Sprintf("Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers %q", name)}})
		}
	}
	return nil
}

// review returns the change as admission sees it.
func (c *change) review(d *door) services.AdmissionRequest {
	r := services.AdmissionRequest{
		UID: string(uuid.NewUUID()), Operation: services.OperationUpdate,
		Group: c.Type.Group, Version: c.Type.Version, Kind: c.Type.Kind, Resource: c.Type.Resource, Subresource: c.subresourceName(),
		Namespace: c.Namespace, Name: c.Name, User: c.User, Object: c.nextRaw, DryRun: c.options.dryRun,
	}
	if !c.exists() {
		r.Operation = services.OperationCreate
		r.Name, _ = strategy.Metadata(c.next)["name"].(string)
	} else if raw, err := d.view(c.current, c.Type); err == nil {
		r.OldObject = raw.JSON
	}
	return r
}

// store is the last step: a dry-run stops before it. An object that a write makes
// free of its last finalizer is removed.
func (d *door) store(ctx context.Context, c *change) (services.Object, error) {
	content, err := d.content(c.next, c.nextRaw, c.Type)
	if err != nil {
		return services.Object{}, err
	}
	key := c.key()
	key.Name, _ = strategy.Metadata(c.next)["name"].(string)
	c.created = !c.exists()
	switch {
	case c.options.dryRun:
		return d.pretend(ctx, c, services.Object{Key: key, JSON: content.JSON})
	case !c.exists():
		return d.storage.Create(ctx, services.CreateRequest{Key: key, Content: content})
	case strategy.Finished(c.next):
		object, err := d.storage.Delete(ctx, services.DeleteRequest{Key: key, Revision: c.current.Revision})
		return object, c.raced(err)
	case d.unchanged(c, content):
		return c.current, nil
	}
	object, err := d.storage.Update(ctx, services.UpdateRequest{Key: key, Revision: c.current.Revision, Content: content})
	return object, c.raced(err)
}

// pretend answers a dry-run: the object as it would be, under the version of the
// one that there is.
func (d *door) pretend(ctx context.Context, c *change, object services.Object) (services.Object, error) {
	if c.exists() {
		object.JSON = c.withVersion(object.JSON)
		return object, nil
	}
	_, err := d.storage.Get(ctx, services.GetRequest{Key: object.Key})
	if err == nil {
		return object, services.AlreadyExists(c.Type.Group, c.Type.Resource, object.Key.Name)
	}
	if !services.IsReason(err, services.ReasonNotFound) {
		return object, err
	}
	return object, nil
}

// raced turns a lost compare-and-swap into another attempt, where the client set
// no condition of its own.
func (c *change) raced(err error) error {
	if c.unconditional && services.IsReason(err, services.ReasonConflict) {
		return errRaced
	}
	return err
}

// unchanged tells whether the write would store what is stored already.
func (d *door) unchanged(c *change, content services.Content) bool {
	return bytes.Equal(c.withVersion(content.JSON), c.current.JSON)
}

// selectableFields returns the values that field selectors are evaluated on.
func selectableFields(t *catalogue.Type, object map[string]any) map[string]string {
	if len(t.Selectable) == 0 {
		return nil
	}
	fields := make(map[string]string, len(t.Selectable))
	for _, f := range t.Selectable {
		value, ok, _ := unstructured.NestedFieldNoCopy(object, f.Path...)
		if !ok || value == nil || value == "" {
			value = f.Default
		}
		fields[f.Name] = fmt.Sprint(value)
	}
	return fields
}
