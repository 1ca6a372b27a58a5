package frontdoor

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/strategy"
	"github.com/portico-platform/portico/services"
)

// subject is the form in which a path shows a stored object, and takes changes to
// it: the object itself, or a body of a subresource's own kind.
type subject interface {
	// show returns what a client sees of the object.
	show(object map[string]any) (map[string]any, error)
	// put returns the object with what a client sent; neither is modified.
	put(object, body map[string]any) (map[string]any, error)
}

// subjectOf returns the subject of a request's path.
func (d *door) subjectOf(r *Request) subject {
	if r.Subresource != nil && r.Subresource.Kind == "Scale" {
		return scale{apiVersion: apiVersion(r.Subresource.Group, r.Subresource.Version)}
	}
	return itself{}
}

// bodyType returns the type of the bodies of a request: that of the path, or the
// subresource's own.
func (d *door) bodyType(r *Request) *catalogue.Type {
	s := r.Subresource
	if s == nil || s.Version == "" || s.Kind == r.Type.Kind {
		return r.Type
	}
	t := &catalogue.Type{Group: s.Group, Version: s.Version, Kind: s.Kind, Resource: r.Type.Resource, Namespaced: r.Type.Namespaced}
	t.Stored = t
	t.Schema, t.Definition, _ = d.types.Body(s.Group, s.Version, s.Kind)
	return t
}

func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

// itself shows the object as it is.
type itself struct{}

func (itself) show(object map[string]any) (map[string]any, error) { return object, nil }

func (itself) put(_, body map[string]any) (map[string]any, error) { return copyObject(body), nil }

// scale shows the number of replicas, whatever the kind of the object.
type scale struct{ apiVersion string }

func (s scale) show(object map[string]any) (map[string]any, error) {
	meta := map[string]any{}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, ok := strategy.Metadata(object)[field]; ok {
			meta[field] = v
		}
	}
	replicas, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "replicas")
	spec := map[string]any{}
	if replicas != nil {
		spec["replicas"] = replicas
	}
	status := map[string]any{"replicas": int64(0)}
	if n, ok, _ := unstructured.NestedFieldNoCopy(object, "status", "replicas"); ok {
		status["replicas"] = n
	}
	selector, ok, _ := unstructured.NestedMap(object, "spec", "selector")
	if ok {
		if text := selectorText(selector); text != "" {
			status["selector"] = text
		}
	}
	return map[string]any{"apiVersion": s.apiVersion, "kind": "Scale", "metadata": meta, "spec": spec, "status": status}, nil
}

func (s scale) put(object, body map[string]any) (map[string]any, error) {
	next := copyObject(object)
	meta := strategy.Metadata(body)
	for _, field := range []string{"name", "resourceVersion", "uid"} {
		if v, ok := meta[field]; ok {
			strategy.Metadata(next)[field] = v
		}
	}
	replicas, ok, _ := unstructured.NestedFieldNoCopy(body, "spec", "replicas")
	if !ok {
		replicas = int64(0)
	}
	n, isInt := replicas.(int64)
	name, _ := meta["name"].(string)
	if !isInt || n < 0 {
		return nil, services.Invalid("autoscaling", "Scale", name, []services.StatusCause{{Reason: services.CauseInvalid,
			Field: "spec.replicas", Message: "Invalid value: must be greater than or equal to 0"}})
	}
	spec, _ := next["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		next["spec"] = spec
	}
	spec["replicas"] = n
	return next, nil
}

// copyObject returns a deep copy.
func copyObject(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	return deepCopy(object).(map[string]any)
}

// deepCopy copies maps and lists; everything else is immutable.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[key] = deepCopy(value)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, value := range v {
			l[i] = deepCopy(value)
		}
		return l
	}
	return v
}

// decodeObject reads an object's JSON; integers become int64.
func decodeObject(raw []byte) (map[string]any, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, err
	}
	return object, nil
}

// encodeObject returns an object's JSON.
func encodeObject(object map[string]any) ([]byte, error) { return json.Marshal(object) }

// decodeStored decodes a stored object in the version of a type.
func (d *door) decodeStored(o services.Object, t *catalogue.Type) (map[string]any, error) {
	object, err := decodeObject(o.JSON)
	if err != nil {
		return nil, err
	}
	return d.versions.Convert(object, t)
}

// selectorText returns a label selector, or a plain map of labels, in the syntax of
// query parameters.
func selectorText(selector map[string]any) string {
	_, hasLabels := selector["matchLabels"]
	_, hasExpressions := selector["matchExpressions"]
	if !hasLabels && !hasExpressions {
		selector = map[string]any{"matchLabels": selector}
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed); err != nil {
		return ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil {
		return ""
	}
	return parsed.String()
}
