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

// Strategic applies a strategic merge patch: lists are merged by the keys in the schema,
// and the directives of the patch are followed ($patch, $retainKeys, $setElementOrder,
// $deleteFromPrimitiveList). Without a schema, maps are merged and lists are replaced.
func Strategic(current, patch map[string]any, schema *spec.Schema, definitions func(name string) *spec.Schema) (patched map[string]any, err error) {
	defer func() { // the library panics on directives that are not lists of strings
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

// position is a position in the type's schema. Below an unknown field, maps are merged and
// lists replaced; pruning removes or reports such fields later.
type position struct {
	definitions func(name string) *spec.Schema
	schema      *spec.Schema
}

// LookupPatchMetadataForStruct returns the position of a field that is an object.
func (p position) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field := p.field(key)
	return position{p.definitions, field}, markers(field), nil
}

// LookupPatchMetadataForSlice returns the position of the items of a field that is a list.
func (p position) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field := p.field(key)
	meta := markers(field)
	if list := p.resolve(field); list != nil && list.Items != nil {
		return position{p.definitions, list.Items.Schema}, meta, nil
	}
	return position{p.definitions, nil}, meta, nil
}

// Name returns the type for errors.
func (p position) Name() string {
	if s := p.resolve(p.schema); s != nil {
		return strings.Join(s.Type, ",")
	}
	return ""
}

// field returns the schema of a member without resolving its reference, because the
// extensions with merge keys are beside the reference.
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
		s = p.definitions(ref[strings.LastIndex(ref, "/")+1:])
	}
	return nil
}

// markerPrefix is the prefix of extensions of schemas in memory, in any vocabulary.
var markerPrefix = vocabulary.K8s().Extension

// markers returns the patch strategy and merge key of a field.
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
