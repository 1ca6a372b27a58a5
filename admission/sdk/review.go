package sdk

import (
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Review is one request under review and the response to it. The fields of the request are
// only read. A Review is used by one goroutine and not after its handler has returned.
type Review struct {
	services.AdmissionRequest

	readOnly   bool           // the review may not change the object
	object     map[string]any // the decoded object; nil until the first Set or Remove
	operations []operation    // what Set and Remove did
	warnings   []string
	audit      map[string]string
}

// Is reports whether the review is about a resource type, or one of its subresources, as in
// Is("", "pods") and Is("apps", "deployments/scale").
func (r *Review) Is(group, path string) bool {
	of := r.Resource
	if r.Subresource != "" {
		of += "/" + r.Subresource
	}
	return r.Group == group && of == path
}

// errNoObject is the error of decoding an object that the operation does not have.
var errNoObject = errors.New("the request has none; check Operation first")

// Decode decodes the new object, with the changes so far, into a typed value or a map. Names
// of members are case-sensitive. An object that does not fit the type is refused with 400,
// so that a malformed object never passes as an empty one.
func (r *Review) Decode(into any) error {
	if r.Object == nil {
		return fmt.Errorf("decoding the new object of a %s: %w", r.Operation, errNoObject)
	}
	raw, err := r.current()
	if err != nil {
		return err
	}
	return r.decode(raw, into)
}

// DecodeOld decodes the stored object, as Decode does. Updates and deletes have one.
func (r *Review) DecodeOld(into any) error {
	if r.OldObject == nil {
		return fmt.Errorf("decoding the old object of a %s: %w", r.Operation, errNoObject)
	}
	return r.decode(r.OldObject, into)
}

func (r *Review) decode(raw []byte, into any) error {
	if err := tree.CheckDepth(raw); err != nil {
		return services.BadRequest("the %s %v", r.Kind, err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return services.BadRequest("the %s cannot be decoded: %v", r.Kind, err)
	}
	return nil
}

// Warn adds a warning, which the client sees whether the request is admitted or refused.
func (r *Review) Warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// Audit adds an annotation to the audit record of the request.
func (r *Review) Audit(key, value string) {
	if r.audit == nil {
		r.audit = map[string]string{}
	}
	r.audit[key] = value
}

// current returns the JSON of the object with its changes.
func (r *Review) current() ([]byte, error) {
	if len(r.operations) == 0 {
		return r.Object, nil
	}
	return tree.Encode(r.object)
}

// response returns the response of the review.
func (r *Review) response() (services.AdmissionResponse, error) {
	response := services.AdmissionResponse{Warnings: r.warnings, AuditAnnotations: r.audit}
	if len(r.operations) == 0 {
		return response, nil
	}
	object, err := tree.Encode(r.object)
	if err != nil {
		return response, fmt.Errorf("encoding the changed object: %w", err)
	}
	response.Object = object
	return response, nil
}
