// Package review holds the state of one admission request as it passes through the
// plugins: the object, the warnings and the audit annotations. It never rejects a request
// by itself. It serves section "Admission plugins" of the specification.
package review

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Collection is an in-memory cache of the objects of one resource type.
type Collection[T any] interface {
	Get(namespace, name string) (T, bool)
	List(namespace string) []T
	// Unreadable is changes.View.Unreadable: who decides by all objects of a namespace must not decide when it
	// returns an error, because it does not know all of them.
	Unreadable(namespace string) error
}

// Review is the state of one request. Object is the one of the request, or the one that
// Current returned last.
type Review struct {
	services.AdmissionRequest
	// Round counts the passes through the mutating plugins, from 0.
	Round int
	// Seen holds the object after each webhook's last call, in the webhook's version, by the
	// webhook's key.
	Seen map[string][]byte

	object           map[string]any // Object, decoded; nil until Decoded is called
	decoded, changed bool           // object is newer than Object; either differs from the request's
	again            bool
	expressions      map[services.ServedType]*cel.Request // the request with Object
	converted        map[services.ServedType]*conversion
	warnings         []string
	warned           int // bytes of warnings
	annotations      map[string]string
	annotated        int // bytes of those of webhooks, services and policies
	timings          []services.Timing
	charge           []byte
}

// New returns the review of a request.
func New(r services.AdmissionRequest) *Review {
	return &Review{AdmissionRequest: r, Seen: map[string][]byte{}, converted: map[services.ServedType]*conversion{},
		object: r.Tree, decoded: r.Object == nil && r.Tree != nil}
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

// IsNamespace reports whether the review is about a namespace or one of its subresources.
func (r *Review) IsNamespace() bool { return r.Group == "" && r.Resource == "namespaces" }

// Type is the resource type that the review is about.
func (r *Review) Type() resource.GroupResource {
	return resource.GroupResource{Group: r.Group, Resource: r.Resource}
}

// Decoded returns the decoded object. A plugin that modifies it must call Changed.
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

// NewPod returns the decoded pod of a create request, and its spec. Both are nil for any
// other request.
func (r *Review) NewPod() (pod, spec map[string]any, err error) {
	if !r.Is(services.OperationCreate, "", "pods") {
		return nil, nil, nil
	}
	pod, err = r.Decoded()
	spec, _ = pod["spec"].(map[string]any)
	return pod, spec, err
}

// Changed records that the object returned by Decoded was modified.
func (r *Review) Changed() { r.decoded, r.changed = true, true }

// Current returns the current object as JSON, nil if the operation has none.
func (r *Review) Current() ([]byte, error) {
	if r.decoded {
		encoded, err := tree.Encode(r.object)
		if err != nil {
			return nil, fmt.Errorf("encoding the admitted object: %w", err)
		}
		r.Object, r.decoded, r.expressions = encoded, false, nil
	}
	return r.Object, nil
}

// Replace sets the current object.
func (r *Review) Replace(object []byte) {
	r.Object, r.object, r.decoded, r.changed, r.expressions = object, nil, false, true, nil
}

// Expressions returns the request for expressions of a rule that names this type. Errors
// are those of As.
func (r *Review) Expressions(ctx context.Context, e *cel.Engine, as services.ServedType) (*cel.Request, error) {
	object, old, err := r.As(ctx, as)
	if err != nil {
		return nil, err
	}
	if known := r.expressions[as]; known != nil {
		return known, nil
	}
	request := r.AdmissionRequest
	request.Object, request.OldObject = object, old
	if r.expressions == nil {
		r.expressions = map[services.ServedType]*cel.Request{}
	}
	r.expressions[as] = e.RequestAs(request, as)
	return r.expressions[as], nil
}

// Again requests a second round, because the object has changed since earlier plugins saw
// it. It has no effect in the second round.
func (r *Review) Again() { r.again = true }

// NextRound begins the second round and reports whether one was requested.
func (r *Review) NextRound() bool {
	if !r.again || r.Round > 0 {
		return false
	}
	r.Round, r.again = r.Round+1, false
	return true
}

const (
	// maxWarning bounds one warning, maxWarned all warnings of a request, in bytes. The
	// front door returns fewer to clients.
	maxWarning = 8 << 10
	maxWarned  = 64 << 10
)

// Warn adds warnings to the response. Long ones are truncated, and those beyond maxWarned
// are dropped.
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

// Annotate adds audit annotations.
func (r *Review) Annotate(annotations map[string]string) {
	if r.annotations == nil {
		r.annotations = map[string]string{}
	}
	maps.Copy(r.annotations, annotations)
}

const (
	// maxAnnotation bounds one audit annotation of a webhook, service or policy, with its key, and maxAnnotated all of
	// a request, in bytes.
	maxAnnotation = 10 << 10
	maxAnnotated  = 64 << 10
)

// AnnotateFrom adds audit annotations that a webhook, service or policy chose, with its name before their keys. Long
// values are truncated, and those beyond maxAnnotated are dropped, in the order of their keys.
func (r *Review) AnnotateFrom(name string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value, full := annotations[key], name+"/"+key
		if len(full) > maxAnnotation/2 {
			continue
		}
		if most := maxAnnotation - len(full); len(value) > most {
			value = strings.ToValidUTF8(value[:most], "")
		}
		if r.annotated += len(full) + len(value); r.annotated > maxAnnotated {
			return
		}
		r.Annotate(map[string]string{full: value})
	}
}

// maxTimings bounds the timings of a response.
const maxTimings = 64

// Timed adds how long a service took.
func (r *Review) Timed(name string, took time.Duration) {
	if len(r.timings) < maxTimings {
		r.timings = append(r.timings, services.Timing{Name: name, Took: took})
	}
}

// Charge records what quotas have been charged for the request, for the response if it is admitted.
func (r *Review) Charge(charge []byte) { r.charge = charge }

// Charged returns what quotas have been charged; nil for nothing.
func (r *Review) Charged() []byte { return r.charge }

// Notes returns the warnings, audit annotations and timings, which are also returned with
// an error.
func (r *Review) Notes() services.AdmissionResponse {
	return services.AdmissionResponse{Warnings: r.warnings, AuditAnnotations: r.annotations, Timings: r.timings}
}

// Response returns the response of an admitted request: the notes, and the object if it
// was changed.
func (r *Review) Response() (services.AdmissionResponse, error) {
	response := r.Notes()
	response.Charge = r.charge
	var err error
	switch {
	case !r.changed:
	case r.Tree != nil && r.object != nil:
		response.Tree, err = plain(r.object)
	default:
		response.Object, err = r.Current()
	}
	return response, err
}

// plain returns a copy of an object in which plugins may have put what they share with others,
// and structs.
func plain(object map[string]any) (map[string]any, error) {
	copied, err := tree.Plain(object)
	if err != nil {
		return nil, fmt.Errorf("copying the admitted object: %w", err)
	}
	return copied.(map[string]any), nil
}

// Forbid returns a Forbidden (403) error for the request's object.
func (r *Review) Forbid(format string, args ...any) *services.Status {
	return services.Forbidden(r.Group, r.Resource, r.Name, fmt.Sprintf(format, args...))
}

// Failed is the answer to a request about which a plugin fails to decide: a 500 without a
// reason, as in release 1.21.
func Failed(format string, args ...any) *services.Status {
	return &services.Status{Code: http.StatusInternalServerError, Message: fmt.Sprintf(format, args...)}
}

// Same reports whether two objects are equal, regardless of their encoding.
func Same(a, b []byte) bool {
	if string(a) == string(b) || len(a) == 0 || len(b) == 0 {
		return string(a) == string(b)
	}
	x, errX := tree.Decode(a)
	y, errY := tree.Decode(b)
	return errX == nil && errY == nil && tree.Equal(x, y)
}
