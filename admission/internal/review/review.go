// Package review is one request on its way through admission, as the plugins see and
// change it, and what they may look at beside it. It decides how a changed object is
// kept and what becomes of it; it never decides about a request. It serves section
// "Admission plugins" of the specification.
package review

import (
	"fmt"
	"maps"
	"strings"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Collection is a resource type as plugins read it: from memory.
type Collection[T any] interface {
	Get(namespace, name string) (T, bool)
	List(namespace string) []T
}

// Review is one request on its way through the chain. Its Object is the one that was
// sent, or the one that Current has returned last.
type Review struct {
	services.AdmissionRequest
	// Round counts the passes through the mutating plugins, from 0.
	Round int
	// Seen remembers what the object was when a webhook of that name had done with it.
	Seen map[string][]byte

	object           map[string]any // Object, decoded; nil until a plugin asks
	decoded, changed bool           // object is ahead of Object; either differs from what was sent
	again            bool
	warnings         []string
	warned           int // bytes of warnings
	annotations      map[string]string
}

// New returns the review of a request.
func New(r services.AdmissionRequest) *Review {
	return &Review{AdmissionRequest: r, Seen: map[string][]byte{}}
}

// Is reports whether the review is about an operation on a resource type itself or
// on one of its subresources, as in "pods" and "pods/exec".
func (r *Review) Is(operation services.Operation, group, path string) bool {
	if r.Operation != operation || r.Group != group {
		return false
	}
	if r.Subresource == "" {
		return path == r.Resource
	}
	return path == r.Resource+"/"+r.Subresource
}

// Type is the resource type that the review is about.
func (r *Review) Type() resource.GroupResource {
	return resource.GroupResource{Group: r.Group, Resource: r.Resource}
}

// Decoded returns the object as a plugin may change it; it says so with Changed.
func (r *Review) Decoded() (map[string]any, error) {
	if r.object == nil {
		object, err := tree.Decode(r.Object)
		if err != nil {
			return nil, services.BadRequest("the object is not JSON: %v", err)
		}
		r.object = object
	}
	return r.object, nil
}

// NewPod returns a pod that is to be created, as a plugin may change it, and its spec;
// nil when the review is about anything else.
func (r *Review) NewPod() (pod, spec map[string]any, err error) {
	if !r.Is(services.OperationCreate, "", "pods") {
		return nil, nil, nil
	}
	pod, err = r.Decoded()
	spec, _ = pod["spec"].(map[string]any)
	return pod, spec, err
}

// Changed notes that a plugin has changed what Decoded returned.
func (r *Review) Changed() { r.decoded, r.changed = true, true }

// Current returns the object as it is now, as JSON; nil when the operation has none.
func (r *Review) Current() ([]byte, error) {
	if r.decoded {
		encoded, err := tree.Encode(r.object)
		if err != nil {
			return nil, fmt.Errorf("encoding the admitted object: %w", err)
		}
		r.Object, r.decoded = encoded, false
	}
	return r.Object, nil
}

// Replace puts another object in place of the present one.
func (r *Review) Replace(object []byte) {
	r.Object, r.object, r.decoded, r.changed = object, nil, false, true
}

// Again asks for a second round, because the object is not any more what earlier
// plugins have seen. In the second round it means nothing.
func (r *Review) Again() { r.again = true }

// NextRound begins the second round, if there has to be one.
func (r *Review) NextRound() bool {
	if !r.again || r.Round > 0 {
		return false
	}
	r.Round, r.again = r.Round+1, false
	return true
}

const (
	// maxWarning is the limit on one warning, and maxWarned on all of them, in bytes: the
	// front door tells clients less than that.
	maxWarning = 8 << 10
	maxWarned  = 64 << 10
)

// Warn adds what the client is to be told. What is beyond what any answer can hold is
// dropped.
func (r *Review) Warn(texts ...string) {
	for _, text := range texts {
		if len(text) > maxWarning {
			text = strings.ToValidUTF8(text[:maxWarning], "")
		}
		if r.warned += len(text) + 1; r.warned > maxWarned {
			return
		}
		r.warnings = append(r.warnings, text)
	}
}

// Annotate adds to the audit record.
func (r *Review) Annotate(annotations map[string]string) {
	if r.annotations == nil {
		r.annotations = map[string]string{}
	}
	maps.Copy(r.annotations, annotations)
}

// Notes is what admission has to add, whether or not a plugin refuses.
func (r *Review) Notes() services.AdmissionResponse {
	return services.AdmissionResponse{Warnings: r.warnings, AuditAnnotations: r.annotations}
}

// Response is what admission has to add, when no plugin refuses.
func (r *Review) Response() (services.AdmissionResponse, error) {
	response := r.Notes()
	var err error
	if r.changed {
		response.Object, err = r.Current()
	}
	return response, err
}

// Forbid refuses the request as a plugin does: with a 403 about its object.
func (r *Review) Forbid(format string, args ...any) *services.Status {
	return services.Forbidden(r.Group, r.Resource, r.Name, fmt.Sprintf(format, args...))
}
