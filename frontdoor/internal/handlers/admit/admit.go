// Package admit calls admission for requests. Only this package builds AdmissionRequests,
// and passes on warnings to the client and annotations to the audit record. It makes no
// decisions and does not access the store. It serves "Admission plugins" and "Dry-run" of
// the specification.
package admit

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/warning"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Call is one HTTP request, for which admission reviews each object that it writes. It
// also collects all other warnings of the request. It is safe for concurrent use.
type Call struct {
	admission services.Admission // nil: exempt from admission
	request   *request.Request
	options   options
	dryRun    bool

	mu       sync.Mutex
	warnings warning.List
	timings  []services.Timing // of admission as a whole without a name
}

// Write returns the call of a request that creates, updates or patches.
func Write(a services.Admission, r *request.Request, o request.WriteOptions) *Call {
	return &Call{admission: a, request: r, options: writeOptions(o), dryRun: o.DryRun}
}

// Delete returns the call of a request that deletes.
func Delete(a services.Admission, r *request.Request, o *metav1.DeleteOptions) *Call {
	return &Call{admission: a, request: r, options: deleteOptions(o), dryRun: request.DryRun(o.DryRun)}
}

// Connect returns the call of a connect request. Its options are the object of the review.
// It has no dry-run.
func Connect(a services.Admission, r *request.Request) *Call {
	return &Call{admission: a, request: r, options: noOptions}
}

// Exempt returns a call without admission, for requests that the front door makes itself.
func Exempt(r *request.Request) *Call { return &Call{request: r} }

// Asks reports whether admission reviews the request.
func (c *Call) Asks() bool { return c.admission != nil }

// Warn adds warnings that do not come from admission.
func (c *Call) Warn(texts ...string) {
	if len(texts) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings.Add(texts...)
}

// Warnings returns all warnings so far. The caller must not modify the slice.
func (c *Call) Warnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warnings.Texts()
}

// Subject is an object that a request writes, and the operation.
type Subject struct {
	Operation       services.Operation
	Namespace, Name string
	// Type is the type of the object, or of the body of a subresource.
	Type *catalogue.Type
	// Old is the stored object as JSON, in the version of Type; nil if there is none.
	Old []byte
	// Repairs is that of services.AdmissionRequest.
	Repairs bool
}

// Review is the admission review of one object: Mutate, then Validate.
type Review struct {
	call      *Call
	question  services.AdmissionRequest
	validated bool // by Both or MutateEarly
	// accepted is what MutateEarly has validated, with the owners that it was sent with; nil if nothing.
	accepted *Object
	charge   []byte // of quotas
}

// Review starts the review of one object.
func (c *Call) Review(s Subject) *Review {
	if !c.Asks() {
		return &Review{call: c}
	}
	r := c.request
	review := &Review{call: c, question: services.AdmissionRequest{Operation: s.Operation, Repairs: s.Repairs,
		Group: r.Type.Group, Version: r.Type.Version, Resource: r.Type.Resource, Subresource: r.SubresourceName(),
		Kind: s.Type.Kind, KindGroup: s.Type.Group, KindVersion: s.Type.Version, Namespace: s.Namespace, Name: s.Name,
		User: r.User, OldObject: s.Old, Options: c.options(s.Operation, r.Engine.MetaGroup()), DryRun: c.dryRun, Served: served(r), Converter: converter{r}}}
	if r.Request != nil {
		review.question.Bypass = bypassed(r.Header)
	}
	return review
}

// Object is the object of a review as JSON, with the types of its owners. Both are empty
// in the review of a deletion.
type Object struct {
	JSON   []byte
	Owners []services.OwnerType
	// Tree is the object for admission that TakesTrees: for MutateTree instead of JSON, for
	// Validate beside it.
	Tree map[string]any
}

// TakesTrees reports whether admission, in this process, takes objects without encoding.
func (r *Review) TakesTrees() bool {
	_, ok := r.call.admission.(services.AdmissionOfTrees)
	return ok
}

// MutateTree is Mutate for an object without JSON, which admission may modify. The changed
// object shares nothing with it.
func (r *Review) MutateTree(ctx context.Context, o Object) (map[string]any, error) {
	answer, err := r.ask(ctx, o, r.call.admission.Mutate)
	if err != nil || answer.Object == nil {
		return answer.Tree, err
	}
	return tree.Decode(answer.Object)
}

// Mutate runs mutating admission. It returns the changed object, or nil if no plugin
// changed it. The error is a *services.Status if admission denies the request.
func (r *Review) Mutate(ctx context.Context, o Object) ([]byte, error) {
	if !r.call.Asks() {
		return nil, nil
	}
	answer, err := r.ask(ctx, o, r.call.admission.Mutate)
	return answer.Object, err
}

// joint is an Admission that is better called once than twice.
type joint interface {
	Joins(services.AdmissionRequest) bool
}

// Joins reports whether Both may save a call.
func (r *Review) Joins() bool {
	j, ok := r.call.admission.(joint)
	return ok && j.Joins(r.question)
}

// Both is Mutate, and Validate if no plugin changed the object and admission can do both at
// once. Validate is still to be called; it does nothing if it is done.
func (r *Review) Both(ctx context.Context, o Object) ([]byte, error) {
	if !r.call.Asks() {
		return nil, nil
	}
	r.question.AndValidate = true
	answer, err := r.ask(ctx, o, r.call.admission.Mutate)
	r.question.AndValidate, r.validated = false, err == nil && answer.Validated && answer.Object == nil
	return answer.Object, err
}

// MutateEarly is Mutate for a caller that calls Settled afterwards. Admission may validate the
// object that is returned.
func (r *Review) MutateEarly(ctx context.Context, o Object) ([]byte, error) {
	if !r.call.Asks() {
		return nil, nil
	}
	_, r.question.ValidateEarly = r.call.admission.(joint)
	answer, err := r.ask(ctx, o, r.call.admission.Mutate)
	r.question.ValidateEarly = false
	if err == nil && answer.Validated {
		if answer.Object != nil {
			o.JSON = answer.Object
		}
		r.accepted = &o
	}
	return answer.Object, err
}

// Settled records what defaults and the like have made of the result of MutateEarly, before
// managedFields are added. Validate does nothing if admission has validated that.
func (r *Review) Settled(object []byte, owners func() []services.OwnerType) {
	if r.accepted != nil {
		r.validated = bytes.Equal(r.accepted.JSON, object) && slices.Equal(r.accepted.Owners, owners())
	}
}

// Validate runs validating admission on the final object. The error is a *services.Status
// if admission denies the request.
func (r *Review) Validate(ctx context.Context, o Object) error {
	if !r.call.Asks() || r.validated {
		return nil
	}
	_, err := r.ask(ctx, o, r.call.admission.Validate)
	return err
}

// refundWithin bounds a refund, which is made even if the request is cancelled.
const refundWithin = 10 * time.Second

// Refund gives back what quotas have been charged for an object that is not stored and never will be. If
// that fails, the charge stays until usage is counted again, and the error is returned for the log.
func (r *Review) Refund(ctx context.Context) error {
	refunds, ok := r.call.admission.(services.AdmissionRefunds)
	if !ok || r.charge == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundWithin)
	defer cancel()
	charge := r.charge
	r.charge = nil
	return refunds.Refund(ctx, charge)
}

func (r *Review) ask(ctx context.Context, o Object, half func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error)) (services.AdmissionResponse, error) {
	question := r.question
	question.UID, question.Object, question.Tree, question.OwnerTypes = string(uuid.NewUUID()), o.JSON, o.Tree, o.Owners
	began := time.Now()
	answer, err := half(ctx, question)
	if err == nil && answer.Charge != nil {
		r.charge = answer.Charge
	}
	r.call.time(time.Since(began), answer.Timings)
	r.call.Warn(answer.Warnings...)
	for key, value := range answer.AuditAnnotations {
		r.call.request.Audit.Note(key, value)
	}
	return answer, err
}
