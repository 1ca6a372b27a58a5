package fieldmanager

import (
	"context"
	"net/http"

	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/patches"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/release"
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
	// Current is the object to patch; nil when there is none, which is only valid for an
	// apply. It is not modified.
	Current map[string]any
	// Manager is the parameter fieldManager, which is required for an apply.
	Manager     string
	Force       bool
	Subresource string // empty for the resource itself
}

// Patch returns the patched object. It shares memory with the current one only below
// managedFields, which are never modified in place. After an apply, managedFields are up to
// date; for other patches the caller has to call Track. The warnings are the findings of a
// strict decoder: duplicate members of the patch.
func (e *Engine) Patch(ctx context.Context, r PatchRequest) (patched map[string]any, warnings []string, err error) {
	if r.MediaType == MediaTypeJSON {
		patched, err = patches.JSON(ctx, r.Current, r.Body)
		return patched, patches.Strict(r.Body), err
	}
	if err := e.CheckMedia(r.Type, r.MediaType); err != nil {
		return nil, nil, err
	}
	patch, warnings, err := decode(r)
	if err != nil {
		return nil, nil, err
	}
	switch r.MediaType {
	case MediaTypeMerge:
		patched = patches.Merge(r.Current, patch)
	case MediaTypeStrategic:
		patched, err = patches.Strategic(r.Current, patch, bodySchema(r), e.Types.Definitions().Get)
	case MediaTypeApply:
		patched, err = e.apply(r, patch)
	}
	return patched, warnings, err
}

// bodySchema returns the schema for a strategic merge; nil for a subresource with a body of
// its own kind, which has no lists to merge.
func bodySchema(r PatchRequest) *spec.Schema {
	if sub := r.Type.Subresources[r.Subresource]; sub != nil && sub.Kind != r.Type.Kind {
		return nil
	}
	return r.Type.Schema()
}

// CheckMedia returns UnsupportedMediaType (415) for a patch of a media type that the type does
// not support.
func (e *Engine) CheckMedia(t *catalogue.Type, mediaType string) error {
	supported := false
	switch mediaType {
	case MediaTypeJSON, MediaTypeMerge:
		supported = true
	case MediaTypeStrategic:
		supported = !t.Custom // its schema has no merge keys
	case MediaTypeApply:
		supported = !e.WithoutApply
	}
	if supported {
		return nil
	}
	return e.unsupported(t)
}

// unsupported returns the 415 of a patch that the type does not support. As in Kubernetes,
// only the message for custom types lists the supported media types.
func (e *Engine) unsupported(t *catalogue.Type) *services.Status {
	refused := &services.Status{Code: http.StatusUnsupportedMediaType, Reason: services.ReasonUnsupportedMediaType, Message: "415: Unsupported Media Type"}
	if !e.Types.Release().Before(release.V136) && !t.Custom {
		refused.Details = &services.StatusDetails{}
	}
	if t.Custom {
		refused.Message = "the body of the request was in an unknown format - accepted media types include: " + MediaTypeJSON + ", " + MediaTypeMerge
		if !e.WithoutApply {
			refused.Message += ", " + MediaTypeApply
		}
	}
	return refused
}

// decode decodes a patch that is an object. It tries JSON first even where YAML is allowed,
// because that is the common case and many times cheaper.
func decode(r PatchRequest) (patch map[string]any, warnings []string, err error) {
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
		warnings = append(warnings, s.Error())
	}
	return patch, warnings, nil
}

// decodeConfig decodes a configuration to apply. An empty body is an empty object.
func decodeConfig(body []byte) (config map[string]any, warnings []string, err error) {
	converted, err := yaml.YAMLToJSONStrict(body)
	if err != nil {
		warnings = patches.DuplicateKeys(err)
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
	return config, warnings, nil
}
