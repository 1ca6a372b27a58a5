package fieldmanager

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/patches"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/tree"
)

// The media types of patches (section "Patch content types").
const (
	MediaTypeJSON      = "application/json-patch+json"
	MediaTypeMerge     = "application/merge-patch+json"
	MediaTypeStrategic = "application/strategic-merge-patch+json"
	MediaTypeApply     = "application/apply-patch+yaml"
)

// PatchRequest is one patch.
type PatchRequest struct {
	Type      *catalogue.Type
	MediaType string
	Body      []byte
	// Current is the object to patch; nil when there is none, which only an apply
	// allows. It is not modified.
	Current map[string]any
	// Manager is the parameter fieldManager: required to apply.
	Manager     string
	Force       bool
	Subresource string // empty for the resource itself
}

// Patch returns the patched object, sharing nothing with the current one but what is
// recorded in managedFields, which nobody ever changes in place. For an
// apply the owners of its fields are recorded already; for the others Track does
// it. The second result names what a strict reader of the patch objects to:
// members that are given twice.
func (e *Engine) Patch(ctx context.Context, r PatchRequest) (patched map[string]any, objections []string, err error) {
	if r.MediaType == MediaTypeJSON {
		patched, err = patches.JSON(ctx, r.Current, r.Body)
		return patched, nil, err
	}
	if !e.accepts(r) {
		return nil, nil, e.unsupported(r.Type)
	}
	patch, objections, err := decode(r)
	if err != nil {
		return nil, nil, err
	}
	switch r.MediaType {
	case MediaTypeMerge:
		patched = patches.Merge(r.Current, patch)
	case MediaTypeStrategic:
		patched, err = patches.Strategic(r.Current, patch, bodySchema(r), e.Types.Definitions())
	case MediaTypeApply:
		patched, err = e.apply(r, patch)
	}
	return patched, objections, err
}

// bodySchema is the schema of the object that a strategic merge changes; nil for
// that of a subresource, which has no lists to merge.
func bodySchema(r PatchRequest) *spec.Schema {
	if sub := r.Type.Subresources[r.Subresource]; sub != nil && sub.Kind != r.Type.Kind {
		return nil
	}
	return r.Type.Schema
}

// accepts reports whether the type takes this kind of patch.
func (e *Engine) accepts(r PatchRequest) bool {
	switch r.MediaType {
	case MediaTypeMerge:
		return true
	case MediaTypeStrategic:
		return !r.Type.Custom // nothing marks its lists
	case MediaTypeApply:
		return !e.WithoutApply
	}
	return false
}

// unsupported is the 415 of a patch that the type does not take. Only those of custom
// types are told what they take.
func (e *Engine) unsupported(t *catalogue.Type) *services.Status {
	message := "415: Unsupported Media Type"
	if t.Custom {
		message = "the body of the request was in an unknown format - accepted media types include: " + MediaTypeJSON + ", " + MediaTypeMerge
		if !e.WithoutApply {
			message += ", " + MediaTypeApply
		}
	}
	return &services.Status{Code: http.StatusUnsupportedMediaType, Reason: services.ReasonUnsupportedMediaType, Message: message}
}

// decode reads a patch that is an object. JSON is read as JSON even where YAML is
// allowed: it is the common case and many times cheaper.
func decode(r PatchRequest) (patch map[string]any, objections []string, err error) {
	if patch, ok := tree.DecodePlain(r.Body); ok {
		return patch, nil, nil
	}
	if r.MediaType == MediaTypeApply {
		return decodeConfig(r.Body)
	}
	if err := tree.CheckDepth(r.Body); err != nil {
		return nil, nil, limit.Deep(err, services.BadRequest("error decoding patch: %v", err))
	}
	strict, err := kjson.UnmarshalStrict(r.Body, &patch)
	switch {
	case err != nil && r.MediaType == MediaTypeMerge:
		return nil, nil, services.BadRequest("error decoding patch: %v", err)
	case err != nil:
		return nil, nil, services.BadRequest("%v", err)
	case patch == nil && r.MediaType == MediaTypeMerge:
		return nil, nil, services.BadRequest("Invalid JSON Patch")
	}
	for _, s := range strict {
		objections = append(objections, s.Error())
	}
	return patch, objections, nil
}

// decodeConfig reads a configuration to apply. Nothing at all is read as an object
// that says nothing.
func decodeConfig(body []byte) (config map[string]any, objections []string, err error) {
	converted, err := yaml.YAMLToJSONStrict(body)
	if err != nil {
		found := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")
		for line := range strings.SplitSeq(found, "\n") {
			objections = append(objections, strings.TrimSpace(line))
		}
		converted, err = yaml.YAMLToJSON(body)
	}
	if err != nil {
		return nil, nil, services.BadRequest("error decoding YAML: error converting YAML to JSON: %v", err)
	}
	if err := tree.CheckDepth(converted); err != nil {
		return nil, nil, limit.Deep(err, services.BadRequest("error decoding YAML: %v", err))
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(converted, &config); err != nil {
		return nil, nil, services.BadRequest("error decoding YAML: error unmarshaling JSON: while decoding JSON: %v", err)
	}
	return config, objections, nil
}
