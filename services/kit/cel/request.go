package cel

import (
	"context"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Request is an admission request as expressions see it. Its objects are decoded once,
// when they are first needed. It is safe for concurrent use.
type Request struct {
	request services.AdmissionRequest
	as      services.ServedType
	user    *user.DefaultInfo
	checks  *checks
	decoded func() (objects, error)
}

// objects are the decoded parts of a request. They are not modified.
type objects struct {
	object, oldObject, options map[string]any
}

// Request returns the request for any number of evaluations. The objects of r must not be
// modified as long as it is used.
func (e *Engine) Request(r services.AdmissionRequest) *Request {
	own := services.ServedType{Group: r.Group, Version: r.Version, Resource: r.Resource, KindGroup: r.Group, KindVersion: r.Version, Kind: r.Kind}
	if r.KindVersion != "" {
		own.KindGroup, own.KindVersion = r.KindGroup, r.KindVersion
	}
	return e.RequestAs(r, own)
}

// RequestAs is Request for a rule that names another type of Served: the objects of r are in
// its version, and request.resource and request.kind are that type.
func (e *Engine) RequestAs(r services.AdmissionRequest, as services.ServedType) *Request {
	if r.Group == "" && r.Resource == "namespaces" {
		r.Namespace = r.Name
	}
	who := &user.DefaultInfo{Name: r.User.Name, UID: r.User.UID, Groups: r.User.Groups, Extra: r.User.Extra}
	return &Request{request: r, as: as, user: who, checks: newChecks(e.authz, who), decoded: sync.OnceValues(func() (objects, error) { return decode(r) })}
}

func decode(r services.AdmissionRequest) (o objects, err error) {
	for _, x := range []struct {
		name string
		raw  []byte
		into *map[string]any
	}{
		{"object", r.Object, &o.object}, {"oldObject", r.OldObject, &o.oldObject}, {"request.options", r.Options, &o.options},
	} {
		if len(x.raw) == 0 {
			continue
		}
		if *x.into, err = tree.Decode(x.raw); err != nil {
			return o, fmt.Errorf("failed to prepare %s variable for evaluation: %w", x.name, err)
		}
	}
	return o, nil
}

// attributes returns the objects for one evaluation, and the variable request.
func (r *Request) attributes() (*admission.VersionedAttributes, *admissionv1.AdmissionRequest, error) {
	o, err := r.decoded()
	if err != nil {
		return nil, nil, err
	}
	q := &r.request
	kind := schema.GroupVersionKind{Group: q.Group, Version: q.Version, Kind: q.Kind}
	if q.KindVersion != "" {
		kind.Group, kind.Version = q.KindGroup, q.KindVersion
	}
	of := schema.GroupVersionResource{Group: q.Group, Version: q.Version, Resource: q.Resource}
	asKind := schema.GroupVersionKind{Group: r.as.KindGroup, Version: r.as.KindVersion, Kind: r.as.Kind}
	as := metav1.GroupVersionResource{Group: r.as.Group, Version: r.as.Version, Resource: r.as.Resource}
	a := admission.NewAttributesRecord(wrap(o.object), wrap(o.oldObject), kind, q.Namespace, q.Name, of, q.Subresource,
		admission.Operation(q.Operation), wrap(o.options), q.DryRun, r.user)
	return &admission.VersionedAttributes{
		Attributes: a, VersionedKind: asKind,
		VersionedObject: admission.NewLazyObject(wrap(o.object)), VersionedOldObject: admission.NewLazyObject(wrap(o.oldObject)),
	}, admissioncel.CreateAdmissionRequest(a, as, metav1.GroupVersionKind(asKind)), nil
}

// wrap returns an object for the library, nil for none.
func wrap(object map[string]any) runtime.Object {
	if object == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}

// Bindings are the values of variables that not all expressions have.
type Bindings struct {
	// Params is an object of the paramKind of a policy; nil is null.
	Params map[string]any
	// Namespace is that of the object; nil is null.
	Namespace *corev1.Namespace
}

// evaluate evaluates programs in their order, within a budget of cost, and returns what is
// left of it. The error means that no more expressions can be evaluated; the results have
// the errors of each.
func (r *Request) evaluate(ctx context.Context, programs []admissioncel.CompilationResult, b Bindings, budget int64) ([]admissioncel.EvaluationResult, int64, error) {
	attributes, request, err := r.attributes()
	if err != nil {
		return nil, 0, err
	}
	checker := &checker{ctx: ctx, checks: r.checks}
	bound := admissioncel.OptionalVariableBindings{Authorizer: checker, VersionedParams: wrap(b.Params)}
	results, left, err := admissioncel.NewCondition(programs).ForInput(ctx, attributes, request, bound, admissioncel.CreateNamespaceObject(b.Namespace), budget)
	switch {
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	case checker.failed != nil:
		return nil, 0, fmt.Errorf("authorization is unavailable: %w", checker.failed)
	}
	return results, left, err
}
