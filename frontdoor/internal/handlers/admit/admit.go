// Package admit asks admission about requests. It is the one place that makes an
// AdmissionRequest of what a client asks for, and that hands on what admission says
// beside its decision: warnings to the client, annotations to the audit record. It
// decides nothing and knows no store. It serves "Admission plugins" and "Dry-run" of the
// specification.
package admit

import (
	"context"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/warning"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
)

// Call is one HTTP request before admission, which is asked about each object that the
// request writes. It also collects all other warnings of the request. It is safe for
// concurrent use.
type Call struct {
	admission services.Admission // nil: nobody is asked
	request   *request.Request
	options   options
	dryRun    bool

	mu       sync.Mutex
	warnings warning.List
}

// Write returns the call of a request that creates, updates or patches.
func Write(a services.Admission, r *request.Request, o request.WriteOptions) *Call {
	return &Call{admission: a, request: r, options: writeOptions(o), dryRun: o.DryRun}
}

// Delete returns the call of a request that deletes.
func Delete(a services.Admission, r *request.Request, o *metav1.DeleteOptions) *Call {
	return &Call{admission: a, request: r, options: deleteOptions(o), dryRun: request.DryRun(o.DryRun)}
}

// Connect returns the call of a request for a connection. It has no options but those
// that are its object, and no dry-run.
func Connect(a services.Admission, r *request.Request) *Call {
	return &Call{admission: a, request: r, options: noOptions}
}

// Exempt returns the call of a request that admission has no say in, because the front
// door makes it itself.
func Exempt(r *request.Request) *Call { return &Call{request: r} }

// Asks reports whether admission has a say in the request.
func (c *Call) Asks() bool { return c.admission != nil }

// Warn adds warnings that come from elsewhere.
func (c *Call) Warn(texts ...string) {
	if len(texts) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings.Add(texts...)
}

// Warnings returns all warnings until now. The caller must not change them.
func (c *Call) Warnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warnings.Texts()
}

// SendWarnings adds all warnings to the headers of an answer, be it an error or not.
func (c *Call) SendWarnings(h http.Header) { warning.Send(h, c.Warnings()...) }

// Subject is what a request does to one object.
type Subject struct {
	Operation       services.Operation
	Namespace, Name string
	// Type is that of the object, or of the body of a subresource.
	Type *catalogue.Type
	// Old is the stored object as JSON, in the version of Type; nil for none.
	Old []byte
}

// Review asks admission about one object: first to change it, then to accept it.
type Review struct {
	call     *Call
	question services.AdmissionRequest
}

// Review begins the review of one object.
func (c *Call) Review(s Subject) *Review {
	if !c.Asks() {
		return &Review{call: c}
	}
	r := c.request
	return &Review{call: c, question: services.AdmissionRequest{Operation: s.Operation,
		Group: r.Type.Group, Version: r.Type.Version, Resource: r.Type.Resource, Subresource: r.SubresourceName(),
		Kind: s.Type.Kind, KindGroup: s.Type.Group, KindVersion: s.Type.Version, Namespace: s.Namespace, Name: s.Name,
		User: r.User, OldObject: s.Old, Options: c.options(s.Operation, r.Engine.MetaGroup()), DryRun: c.dryRun}}
}

// Object is the object of a review, as JSON, and the types of its owners; neither for
// the review of a deletion.
type Object struct {
	JSON   []byte
	Owners []services.OwnerType
}

// Mutate lets admission change the object. It returns the changed object, nil when
// nobody has changed it. The error is a *services.Status when it is refused.
func (r *Review) Mutate(ctx context.Context, o Object) ([]byte, error) {
	if !r.call.Asks() {
		return nil, nil
	}
	return r.ask(ctx, o, r.call.admission.Mutate)
}

// Validate lets admission refuse the final object, with a *services.Status.
func (r *Review) Validate(ctx context.Context, o Object) error {
	if !r.call.Asks() {
		return nil
	}
	_, err := r.ask(ctx, o, r.call.admission.Validate)
	return err
}

func (r *Review) ask(ctx context.Context, o Object, half func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error)) ([]byte, error) {
	question := r.question
	question.UID, question.Object, question.OwnerTypes = string(uuid.NewUUID()), o.JSON, o.Owners
	answer, err := half(ctx, question)
	r.call.Warn(answer.Warnings...)
	for key, value := range answer.AuditAnnotations {
		r.call.request.Audit.Annotate(key, value)
	}
	return answer.Object, err
}
