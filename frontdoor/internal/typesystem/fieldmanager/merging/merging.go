// Package merging merges what admission policies set into objects. It records no field
// manager: that is the work of package fieldmanager. It serves "Admission plugins" of the
// specification.
package merging

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/hidden"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Merge returns a copy of an object with the configuration of an admission policy merged into it, by
// the list types of the object's type. Unlike an apply it has no manager: managedFields stay
// as they are, and nothing is removed. The error is a BadRequest for a configuration that
// does not fit the type, or that sets an atomic list or map, whose other items would be lost.
func Merge(e *fieldmanager.Engine, t *catalogue.Type, object, config map[string]any) (map[string]any, error) {
	patch, err := e.Typed(config)
	if err != nil {
		return nil, unmerged("failed to convert patch object to typed object", err)
	}
	if found := atomics(nil, patch.Schema(), patch.TypeRef(), patch.AsValue()); len(found) > 0 {
		return nil, services.BadRequest("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %v", strings.Join(found, ", "))
	}
	visible, later := object, []hidden.Field(nil)
	if !t.Custom {
		visible, later = hidden.Take(object, t.Schema(), e.Definition)
	}
	live, err := e.Typed(visible, typed.AllowDuplicates)
	if err != nil {
		return nil, unmerged("failed to convert original object to typed object", err)
	}
	merged, err := live.Merge(patch)
	if err != nil {
		return nil, unmerged("failed to merge patch", err)
	}
	result, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, services.BadRequest("failed to merge patch: the result is no object")
	}
	result = runtime.DeepCopyJSON(result)
	for _, h := range later {
		h.PutBack(result)
	}
	if owners, ok := tree.Child(object, "metadata")["managedFields"]; ok {
		tree.Child(result, "metadata")["managedFields"] = owners
	}
	return result, nil
}

func unmerged(what string, err error) error {
	var refused *services.Status
	if errors.As(err, &refused) {
		return refused
	}
	return services.BadRequest("%s: %v", what, err)
}

// atomics returns the paths of all atomic lists, maps and structs in a value.
func atomics(at fieldpath.Path, s *schema.Schema, of schema.TypeRef, v value.Value) (found []string) {
	atom, ok := s.Resolve(of)
	if !ok {
		return nil
	}
	if v.IsMap() && atom.Map != nil {
		if atom.Map.ElementRelationship == schema.Atomic {
			found = append(found, at.String())
		}
		v.AsMap().Iterate(func(key string, below value.Value) bool {
			if field, ok := atom.Map.FindField(key); ok {
				found = append(found, atomics(append(at, fieldpath.PathElement{FieldName: &key}), s, field.Type, below)...)
			}
			return true
		})
	}
	if v.IsList() && atom.List != nil {
		if atom.List.ElementRelationship == schema.Atomic {
			found = append(found, at.String())
		}
		list := v.AsList()
		for i := range list.Length() {
			found = append(found, atomics(append(at, fieldpath.PathElement{Index: &i}), s, atom.List.ElementType, list.At(i))...)
		}
	}
	return found
}
