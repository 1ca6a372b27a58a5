package cel

import (
	"context"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
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
	if r.Group == "" && r.Resource == "namespaces" {
		r.Namespace = r.Name
	}
	who := &user.DefaultInfo{Name: r.User.Name, UID: r.User.UID, Groups: r.User.Groups, Extra: r.User.Extra}
	return &Request{request: r, user: who, checks: newChecks(e.authz, who), decoded: sync.OnceValues(func() (objects, error) { return decode(r) })}
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
	a := admission.NewAttributesRecord(wrap(o.object), wrap(o.oldObject), kind, q.Namespace, q.Name, of, q.Subresource,
		admission.Operation(q.Operation), wrap(o.options), q.DryRun, r.user)
	return &admission.VersionedAttributes{
		Attributes: a, VersionedKind: kind,
		VersionedObject: admission.NewLazyObject(wrap(o.object)), VersionedOldObject: admission.NewLazyObject(wrap(o.oldObject)),
	}, admissioncel.CreateAdmissionRequest(a, metav1.GroupVersionResource(of), metav1.GroupVersionKind(kind)), nil
}

// wrap returns an object for the library, nil for none.
func wrap(object map[string]any) runtime.Object {
	if object == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}

// evaluate evaluates programs in their order, within a budget of cost. The error means
// that no more expressions can be evaluated; the results have the errors of each.
func (r *Request) evaluate(ctx context.Context, programs []admissioncel.CompilationResult, budget int64) ([]admissioncel.EvaluationResult, error) {
	attributes, request, err := r.attributes()
	if err != nil {
		return nil, err
	}
	checker := &checker{ctx: ctx, checks: r.checks}
	results, _, err := admissioncel.NewCondition(programs).ForInput(ctx, attributes, request,
		admissioncel.OptionalVariableBindings{Authorizer: checker}, nil, budget)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case checker.failed != nil:
		return nil, fmt.Errorf("authorization is unavailable: %w", checker.failed)
	}
	return results, err
}
