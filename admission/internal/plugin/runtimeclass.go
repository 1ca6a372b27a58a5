package plugin

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quantity"
	"github.com/portico-platform/portico/services/resource"
)

// overhead is a pod's overhead by resource name.
type overhead map[string]apiresource.Quantity

// UnmarshalJSON reads an overhead with the bounds of package quantity.
func (o *overhead) UnmarshalJSON(raw []byte) error {
	all, err := quantity.ParseMap(raw)
	*o = all
	return err
}

// RuntimeClass is the part of a stored RuntimeClass that admission reads.
type RuntimeClass struct {
	Overhead struct {
		PodFixed overhead `json:"podFixed"`
	} `json:"overhead"`
	Scheduling struct {
		NodeSelector map[string]string `json:"nodeSelector"`
		Tolerations  []map[string]any  `json:"tolerations"`
	} `json:"scheduling"`
}

// ParseRuntimeClass reads a stored runtime class.
func ParseRuntimeClass(o services.Object) (RuntimeClass, error) {
	var class RuntimeClass
	return class, json.Unmarshal(o.JSON, &class)
}

// runtimeClass sets the overhead, node selector and tolerations of new pods from the
// RuntimeClass that they name.
type runtimeClass struct {
	classes review.Collection[RuntimeClass]
	store   services.Reader
	group   string // of the classes
}

func (p runtimeClass) mutate(ctx context.Context, r *review.Review) error {
	spec, class, err := p.read(ctx, r)
	if err != nil || class == nil {
		return err
	}
	if len(class.Overhead.PodFixed) > 0 {
		if given := spec["overhead"]; given != nil && !equality.Semantic.DeepEqual(quantities(given), class.Overhead.PodFixed) {
			return r.Forbid("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
		spec["overhead"] = class.Overhead.PodFixed
	}
	if err := class.applyScheduling(r, spec); err != nil {
		return err
	}
	r.Changed()
	return nil
}

// applyScheduling adds the node selector and the tolerations of the class to a pod spec. It
// returns Forbidden if the node selectors conflict.
func (c *RuntimeClass) applyScheduling(r *review.Review, spec map[string]any) error {
	selector, _ := spec["nodeSelector"].(map[string]any)
	if selector == nil && len(c.Scheduling.NodeSelector) > 0 {
		selector = map[string]any{}
		spec["nodeSelector"] = selector
	}
	for key, value := range c.Scheduling.NodeSelector {
		if given, ok := selector[key]; ok && given != value {
			return r.Forbid("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %v", key, value, key, given)
		}
		selector[key] = value
	}
	tolerations, _ := spec["tolerations"].([]any)
	has := make(map[tolerationKey]bool, len(tolerations))
	for _, t := range tolerations {
		given, _ := t.(map[string]any)
		has[keyOf(given)] = true
	}
	for _, required := range c.Scheduling.Tolerations {
		if key := keyOf(required); !has[key] {
			has[key] = true
			tolerations = append(tolerations, required)
		}
	}
	if len(tolerations) > 0 {
		spec["tolerations"] = tolerations
	}
	return nil
}

// tolerationKey identifies a toleration, without tolerationSeconds. Missing fields are
// empty.
type tolerationKey struct{ key, operator, value, effect string }

func keyOf(toleration map[string]any) (a tolerationKey) {
	a.key, _ = toleration["key"].(string)
	a.operator, _ = toleration["operator"].(string)
	a.value, _ = toleration["value"].(string)
	a.effect, _ = toleration["effect"].(string)
	return a
}

// validate rejects pods whose overhead differs from that of their class.
func (p runtimeClass) validate(ctx context.Context, r *review.Review) error {
	spec, class, err := p.read(ctx, r)
	if err != nil || spec == nil {
		return err
	}
	given := spec["overhead"]
	switch defined := class != nil && len(class.Overhead.PodFixed) > 0; {
	case !defined && given != nil:
		return r.Forbid("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	case defined && !equality.Semantic.DeepEqual(quantities(given), class.Overhead.PodFixed):
		return r.Forbid("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
	}
	return nil
}

// read returns the spec of a new pod and the class that it names. Each is nil if there is
// none.
func (p runtimeClass) read(ctx context.Context, r *review.Review) (map[string]any, *RuntimeClass, error) {
	_, spec, err := r.NewPod()
	if err != nil {
		return nil, nil, err
	}
	name, _ := spec["runtimeClassName"].(string)
	if name == "" {
		return spec, nil, nil
	}
	if class, ok := p.classes.Get("", name); ok {
		return spec, &class, nil
	}
	// The mirror may lag behind the store, so only the newest state rejects the pod.
	key := resource.Key{GroupResource: resource.GroupResource{Group: p.group, Resource: "runtimeclasses"}, Name: name}
	stored, err := p.store.Get(ctx, services.GetRequest{Key: key})
	if services.IsReason(err, services.ReasonNotFound) {
		return nil, nil, r.Forbid("pod rejected: RuntimeClass %q not found", name)
	}
	if err != nil {
		return nil, nil, err
	}
	class, err := ParseRuntimeClass(stored)
	return spec, &class, err
}

// quantities returns the overhead in an object, nil if it is not a valid one.
func quantities(value any) overhead {
	if value == nil {
		return nil
	}
	encoded, err := json.Marshal(value)
	read := overhead{}
	if err != nil || json.Unmarshal(encoded, &read) != nil {
		return nil
	}
	return read
}
