package patches

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Strategic merges lists by the keys that the schema names, and follows the
// directives of the patch ($patch, $retainKeys, $setElementOrder,
// $deleteFromPrimitiveList). The schema may refer to the definitions; without one
// maps merge and lists are replaced.
func Strategic(current, patch map[string]any, schema *spec.Schema, definitions map[string]*spec.Schema) (patched map[string]any, err error) {
	defer func() { // the library takes it on trust that its directives are lists of names
		if recover() != nil {
			patched, err = nil, services.BadRequest("the directives of the patch are malformed")
		}
	}()
	if !affordable(current, patch, position{definitions, schema}) {
		return nil, limit.Exceeded(limit.Patch, services.TooLarge("The patch merges lists that are too long: use a JSON patch, a merge patch or an update instead"))
	}
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(runtime.DeepCopyJSON(current), patch, position{definitions, schema})
	switch {
	case err == nil:
		return runtime.DeepCopyJSON(merged), nil
	case errors.Is(err, mergepatch.ErrNoListOfLists):
		return nil, jsonpatch.Unprocessable(err.Error())
	}
	return nil, services.BadRequest("%v", err)
}

// position is where a strategic merge is in the type's schema. Below a field that
// the schema does not know it merges maps and replaces lists; pruning takes such
// fields away later, or reports them.
type position struct {
	definitions map[string]*spec.Schema
	schema      *spec.Schema
}

// LookupPatchMetadataForStruct descends into a field that is an object.
func (p position) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field := p.field(key)
	return position{p.definitions, field}, markers(field), nil
}

// LookupPatchMetadataForSlice descends into the items of a field that is a list.
func (p position) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field := p.field(key)
	meta := markers(field)
	if list := p.resolve(field); list != nil && list.Items != nil {
		return position{p.definitions, list.Items.Schema}, meta, nil
	}
	return position{p.definitions, nil}, meta, nil
}

// Name names the type in errors.
func (p position) Name() string {
	if s := p.resolve(p.schema); s != nil {
		return strings.Join(s.Type, ",")
	}
	return ""
}

// field returns the schema of a member, before its reference is resolved: the
// markers stand beside the reference.
func (p position) field(key string) *spec.Schema {
	s := p.resolve(p.schema)
	if s == nil {
		return nil
	}
	if field, ok := s.Properties[key]; ok {
		return &field
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}

func (p position) resolve(s *spec.Schema) *spec.Schema {
	for s != nil {
		if len(s.AllOf) == 1 && s.Ref.String() == "" {
			s = &s.AllOf[0]
			continue
		}
		ref := s.Ref.String()
		if ref == "" {
			return s
		}
		s = p.definitions[ref[strings.LastIndex(ref, "/")+1:]]
	}
	return nil
}

// markerPrefix is how schemas are marked inside the service, in any vocabulary.
var markerPrefix = vocabulary.K8s().Extension

// markers returns the strategy and merge key of a field.
func markers(field *spec.Schema) strategicpatch.PatchMeta {
	var meta strategicpatch.PatchMeta
	if field == nil {
		return meta
	}
	if key, ok := field.Extensions.GetString(markerPrefix + "patch-merge-key"); ok {
		meta.SetPatchMergeKey(key)
	}
	if strategy, ok := field.Extensions.GetString(markerPrefix + "patch-strategy"); ok {
		meta.SetPatchStrategies(strings.Split(strategy, ","))
	}
	return meta
}

var _ strategicpatch.LookupPatchMeta = position{}
