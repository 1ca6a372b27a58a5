package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/labelselector"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// maxParams bounds the objects that the selector of one binding may find.
const maxParams = 1000

// Custom is the part of a stored CustomResourceDefinition that finds the objects of a kind.
type Custom struct {
	group, kind, plural string
	namespaced          bool
	// converts is set if the versions differ in more than their names.
	converts bool
	served   map[string]bool
}

// ParseCustom parses a stored CustomResourceDefinition.
func ParseCustom(o services.Object) (Custom, error) {
	var stored struct {
		Spec struct {
			Group, Scope string
			Names        struct{ Plural, Kind string }
			Conversion   struct{ Strategy string }
			Versions     []struct {
				Name   string
				Served bool
			}
		}
	}
	err := json.Unmarshal(o.JSON, &stored)
	s := stored.Spec
	c := Custom{group: s.Group, kind: s.Names.Kind, plural: s.Names.Plural, namespaced: s.Scope == "Namespaced",
		converts: s.Conversion.Strategy == "Webhook", served: map[string]bool{}}
	for _, v := range s.Versions {
		c.served[v.Name] = v.Served
	}
	return c, err
}

// objects reads parameters and namespaces. What one request has read is not read again.
type objects struct {
	store  services.Reader
	custom review.Collection[Custom]
	known  map[resource.Key]services.Object
}

// of returns the objects of a paramKind that a binding names: one nil if the policy has no
// paramKind or the binding names none, and nothing if there are none, unless the binding
// says that this refuses requests.
func (o *objects) of(ctx context.Context, kind *admissionregistrationv1.ParamKind, ref *admissionregistrationv1.ParamRef, namespace string) ([]map[string]any, error) {
	if kind == nil || ref == nil {
		return []map[string]any{nil}, nil
	}
	gr, c, err := o.resource(kind)
	if err != nil {
		return nil, err
	}
	switch {
	case !c.namespaced && ref.Namespace != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !c.namespaced:
		namespace = ""
	case ref.Namespace != "":
		namespace = ref.Namespace
	case namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	}
	found, err := o.find(ctx, resource.Key{GroupResource: gr, Namespace: namespace, Name: ref.Name}, ref.Selector)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	params := make([]map[string]any, len(found))
	for i, object := range found {
		if params[i], err = c.decode(object, kind); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// resource returns the type of a paramKind: ConfigMaps, or a custom type.
func (o *objects) resource(kind *admissionregistrationv1.ParamKind) (resource.GroupResource, Custom, error) {
	if kind.APIVersion == "v1" && kind.Kind == "ConfigMap" {
		return resource.GroupResource{Resource: "configmaps"}, Custom{namespaced: true}, nil
	}
	group, version, _ := strings.Cut(kind.APIVersion, "/")
	for _, c := range o.custom.List("") {
		if c.group == group && c.kind == kind.Kind && c.served[version] {
			return resource.GroupResource{Group: group, Resource: c.plural, Custom: true}, c, nil
		}
	}
	return resource.GroupResource{}, Custom{}, fmt.Errorf("paramKind kind `%v` not known", kind.String())
}

// find returns the object of a name, or those that a selector selects.
func (o *objects) find(ctx context.Context, key resource.Key, selector *metav1.LabelSelector) ([]services.Object, error) {
	switch {
	case key.Name != "" && selector != nil:
		return nil, errors.New("paramRef.name and paramRef.selector are mutually exclusive")
	case key.Name != "":
		object, err := o.get(ctx, key)
		if isNotFound(err) {
			return nil, nil
		}
		return []services.Object{object}, err
	case selector == nil:
		return nil, errors.New("one of name or selector must be provided")
	}
	parsed, err := labelselector.Parse(selector)
	if err != nil {
		return nil, err
	}
	next := services.ListRequest{GroupResource: key.GroupResource, Namespace: key.Namespace, LabelSelector: parsed.String(), Read: services.Read{Mode: services.AnyRevision}}
	var found []services.Object
	for {
		page, err := o.store.List(ctx, next)
		if err != nil {
			return nil, err
		}
		if found = append(found, page.Objects...); len(found) > maxParams {
			return nil, fmt.Errorf("the selector finds more than %d params", maxParams)
		}
		if page.Next == "" {
			return found, nil
		}
		next = page.Following(next)
	}
}

// get returns an object as the store has it in memory, or as it is now if it is not there.
func (o *objects) get(ctx context.Context, key resource.Key) (services.Object, error) {
	if known, ok := o.known[key]; ok {
		return known, nil
	}
	found, err := o.store.Get(ctx, services.GetRequest{Key: key, Read: services.Read{Mode: services.AnyRevision}})
	if isNotFound(err) {
		found, err = o.store.Get(ctx, services.GetRequest{Key: key})
	}
	if err == nil {
		o.known[key] = found
	}
	return found, err
}

func isNotFound(err error) bool {
	var status *services.Status
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// decode returns a stored object in the version of a paramKind.
func (c Custom) decode(o services.Object, kind *admissionregistrationv1.ParamKind) (map[string]any, error) {
	object, err := tree.Decode(o.JSON)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.Key.Name, err)
	}
	if c.converts && object["apiVersion"] != kind.APIVersion {
		return nil, fmt.Errorf("%s is stored as %v, which needs a webhook to convert to %s", o.Key.Name, object["apiVersion"], kind.APIVersion)
	}
	object["apiVersion"], object["kind"] = kind.APIVersion, kind.Kind
	return object, nil
}

// namespace returns a namespace.
func (o *objects) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	stored, err := o.get(ctx, resource.Key{GroupResource: namespaces.Type, Name: name})
	if err != nil {
		return nil, err
	}
	found := &corev1.Namespace{}
	return found, json.Unmarshal(stored.JSON, found)
}
