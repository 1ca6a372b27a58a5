package fieldmanager

import (
	"errors"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/hidden"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// beforeApply is the field manager that is recorded for all fields of an untracked object
// when it is applied to for the first time.
const beforeApply = "before-first-apply"

// apply merges a configuration into the current object (section "Server-side apply").
// Fields that the manager applied last time and that the configuration lacks are removed,
// unless other managers own them.
func (e *Engine) apply(r PatchRequest, config map[string]any) (map[string]any, error) {
	if err := checkConfig(r, config); err != nil {
		return nil, err
	}
	settleNumbers(config)
	live := r.Current
	if live == nil {
		live = emptyOf(r.Type)
	}
	if object, ok := e.applyQuickly(r, live, config); ok {
		return object, nil
	}
	return e.applyFully(r, live, config)
}

// applyFully is apply with the field-set library, which covers all cases.
func (e *Engine) applyFully(r PatchRequest, live, config map[string]any) (map[string]any, error) {
	o, err := decodeOwners(ownersOf(live))
	if err != nil {
		return nil, services.BadRequest("the object's managedFields cannot be read: %v", err)
	}
	before := o.clone()
	if len(o.fields) == 0 && r.Current != nil {
		if err := e.adopt(r, o); err != nil {
			return nil, err
		}
	}
	visible, later := live, []hidden.Field(nil)
	if !r.Type.Custom {
		visible, later = hidden.Take(live, r.Type.Schema(), e.Definition)
	}
	merged, fields, err := e.applyTyped(r, visible, config, o)
	if err != nil {
		return nil, err
	}
	if merged == nil && r.Current != nil && fields.Equals(before) {
		return copyOf(live), nil // no change, so the recorded times stay
	}
	object := live
	if merged != nil { // otherwise the recorded time stays
		object, _ = merged.AsValue().Unstructured().(map[string]any)
		o.times[applierKey(r)] = e.time()
	}
	object = copyOf(object)
	if merged != nil {
		for _, h := range later {
			h.PutBack(object)
		}
		keepEmptied(object, config, othersOf(before, r.Type.APIVersion()))
	}
	o.fields = fields
	e.syncLastApplied(r, object, config)
	list, err := o.encode()
	if err != nil {
		return nil, err
	}
	setOwners(object, list)
	return object, nil
}

// checkConfig returns an error for a configuration of another type, or with managedFields.
func checkConfig(r PatchRequest, config map[string]any) error {
	apiVersion, kind := tree.Text(config, "apiVersion"), tree.Text(config, "kind")
	switch {
	case apiVersion != r.Type.APIVersion():
		return services.BadRequest("Incorrect version specified in apply patch. Specified patch version: %s, expected: %s", apiVersion, r.Type.APIVersion())
	case kind != r.Type.Kind:
		return services.BadRequest("invalid object type: %s, Kind=%s", groupVersion(apiVersion), kind)
	}
	metadata, _ := config["metadata"].(map[string]any)
	if metadata["managedFields"] != nil {
		return services.BadRequest("metadata.managedFields must be nil")
	}
	delete(metadata, "managedFields")
	return nil
}

// groupVersion returns an apiVersion with its group, which may be empty.
func groupVersion(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return apiVersion
	}
	return "/" + apiVersion
}

// adopt records the manager beforeApply for the fields of an untracked object, so that the
// first apply can conflict with them.
func (e *Engine) adopt(r PatchRequest, o owners) error {
	c := Change{Type: r.Type, New: r.Current, Manager: beforeApply, Subresource: r.Subresource}
	fields, err := e.update(c, o)
	if err != nil {
		return err
	}
	if set, ok := fields[current]; ok {
		o.fields[updaterKey(c)] = set
		o.times[updaterKey(c)] = e.time()
	}
	return nil
}

// applyTyped returns the merged object, nil when it equals the live one, and the fields of
// all managers.
func (e *Engine) applyTyped(r PatchRequest, live, config map[string]any, o owners) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	configTyped, err := e.Typed(config)
	if err != nil {
		return nil, nil, untyped(config, err)
	}
	liveTyped, err := e.Typed(live, typed.AllowDuplicates)
	if err != nil {
		return nil, nil, err
	}
	key, version := applierKey(r), fieldpath.APIVersion(r.Type.APIVersion())
	updater := e.updater(r.Type, r.Subresource, o)
	merged, fields, err := updater.Apply(liveTyped, configTyped, version, o.clone(), key, r.Force)
	var conflicts smd.Conflicts
	if errors.As(err, &conflicts) {
		left := e.withoutLastApplied(r, liveTyped, conflicts)
		if len(left) > 0 {
			return nil, nil, conflictStatus(left)
		}
		merged, fields, err = updater.Apply(liveTyped, configTyped, version, o.clone(), key, true)
	}
	var away unconverted
	switch {
	case errors.As(err, &away):
		return nil, nil, away.error
	case err != nil:
		return nil, nil, services.BadRequest("the applied object cannot be merged: %v", err)
	}
	return merged, e.withoutIdentity(fields, key), nil
}

// untyped returns the error of a configuration that does not match the schema of its type.
func untyped(config map[string]any, err error) *services.Status {
	var refused *services.Status
	if errors.As(err, &refused) {
		return refused
	}
	metadata, _ := config["metadata"].(map[string]any)
	return services.BadRequest("failed to create typed patch object (%s/%s; %s, Kind=%s): %v", tree.Text(metadata, "namespace"), tree.Text(metadata, "name"),
		groupVersion(tree.Text(config, "apiVersion")), tree.Text(config, "kind"), err)
}

func applierKey(r PatchRequest) string {
	return identity{operation: operationApply, name: managerOr(r.Manager), subresource: r.Subresource}.key()
}
