package reviews

import (
	"encoding/json"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services"
)

// checkAccess validates an access review: it must have either resource or non-resource
// attributes, a user or group, and no metadata.
func checkAccess(r *request.Request, raw []byte, spec authorizationv1.SubjectAccessReviewSpec) error {
	var c field.Errors
	at := &field.Path{Name: "spec"}
	res, path := spec.ResourceAttributes, spec.NonResourceAttributes
	switch {
	case res != nil && path != nil:
		c.Invalid(at.Field("nonResourceAttributes"), path, "cannot be specified in combination with resourceAttributes")
	case res == nil && path == nil:
		c.Invalid(at.Field("resourceAttributes"), nil, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
	if res != nil {
		checkSelectors(&c, at.Field("resourceAttributes"), res)
	}
	ofOthers := r.Type.Resource == "subjectaccessreviews" || r.Type.Namespaced
	if ofOthers && spec.User == "" && len(spec.Groups) == 0 {
		c.Invalid(at.Field("user"), "", "at least one of user or group must be specified")
	}
	if r.Type.Namespaced && res != nil && res.Namespace != r.Namespace {
		c.Invalid(at.Field("resourceAttributes").Field("namespace"), res.Namespace, "must match metadata.namespace")
	}
	if r.Type.Namespaced && path != nil {
		c.Invalid(at.Field("nonResourceAttributes"), path, "disallowed on this kind of request")
	}
	checkNameless(r, raw, &c)
	if causes := c.Causes(); len(causes) > 0 {
		return services.Invalid(r.Type.Group, r.Type.Kind, "", causes)
	}
	return nil
}

// checkNameless rejects a review with metadata other than the namespace.
func checkNameless(r *request.Request, raw []byte, c *field.Errors) {
	var object struct {
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return // not possible: the body has been decoded before
	}
	why := "must be empty"
	if r.Type.Namespaced {
		why = "must be empty except for namespace"
	}
	for name, value := range object.Metadata {
		if fields, ok := value.(map[string]any); ok && len(fields) == 0 {
			continue
		}
		if name != "namespace" && name != "managedFields" && !rules.Empty(value) {
			c.Invalid(&field.Path{Name: "metadata"}, object.Metadata, why)
			return
		}
	}
}
