package typesystem

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/labelselector"
	"github.com/portico-platform/portico/services/tree"
)

// Subject maps the body of a path to the stored object: the body is the object itself, or
// of a subresource's own kind.
type Subject interface {
	// Show returns the body of a response.
	Show(object map[string]any) (map[string]any, error)
	// Put returns the object with the changes of a request body. It does not modify the
	// object; the result may share memory with the body. A body of a subresource's own kind
	// must have been defaulted.
	Put(object, body map[string]any) (map[string]any, error)
}

// ShowJSON returns what a subject shows of a stored object, both as JSON.
func ShowJSON(s Subject, stored []byte) ([]byte, error) {
	object, err := tree.Decode(stored)
	if err != nil {
		return nil, err
	}
	shown, err := s.Show(object)
	if err != nil {
		return nil, err
	}
	return tree.Encode(shown)
}

// SubjectOf returns the subject of a path.
func SubjectOf(s *catalogue.Subresource) Subject {
	if s != nil && s.Kind == "Scale" {
		return scale{apiVersion(s.Group, s.Version), cmp.Or(s.Scale, usualScale)}
	}
	return itself{}
}

// BodyType returns the type of the bodies of a path: that of the resource, or the
// subresource's own.
func (e *Engine) BodyType(t *catalogue.Type, s *catalogue.Subresource) *catalogue.Type {
	if s == nil || s.Kind == t.Kind {
		return t
	}
	group, version, kind := BodyKind(t, s)
	body := &catalogue.Type{Group: group, Version: version, Kind: kind, Resource: t.Resource, Namespaced: t.Namespaced, NameRule: t.NameRule}
	body.Stored = body
	if definition, ok := e.Types.Body(body.Group, body.Version, body.Kind); ok {
		body.Describe(definition, e.Types.Definitions()[definition])
	}
	if s.Kind == "Scale" {
		body.Columns = scaleColumns
	}
	return body
}

// BodyKind returns the group, version and kind of the bodies of a path.
func BodyKind(t *catalogue.Type, s *catalogue.Subresource) (group, version, kind string) {
	switch {
	case s == nil || s.Kind == t.Kind:
		return t.Group, t.Version, t.Kind
	case s.Version == "":
		return t.Group, t.Version, s.Kind
	}
	return s.Group, s.Version, s.Kind
}

// scaleColumns are the columns of a scale's Table.
var scaleColumns = []kinds.Column{
	{Name: "Name", Type: "string", Format: "name", Cell: ".metadata.name"},
	{Name: "Desired", Type: "integer", Cell: ".spec.replicas", Description: "Number of replicas that are wanted."},
	{Name: "Available", Type: "integer", Cell: ".status.replicas", Description: "Number of replicas that there are."},
	{Name: "Age", Type: "string", Cell: kinds.CellAge, Description: "Time since the creation of the object."},
}

func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

// itself is the subject of paths whose body is the object.
type itself struct{}

func (itself) Show(object map[string]any) (map[string]any, error) { return object, nil }

func (itself) Put(_, body map[string]any) (map[string]any, error) { return body, nil }

// scale is the subject of the scale subresource of any kind.
type scale struct {
	apiVersion string
	at         *catalogue.ScalePaths
}

// usualScale has the field paths of built-in types.
var usualScale = &catalogue.ScalePaths{
	Replicas: []string{"spec", "replicas"}, StatusReplicas: []string{"status", "replicas"}, Selector: []string{"spec", "selector"},
}

func (s scale) Show(object map[string]any) (map[string]any, error) {
	meta := map[string]any{}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, ok := strategy.Metadata(object)[field]; ok {
			meta[field] = v
		}
	}
	spec := map[string]any{}
	if replicas, _, _ := unstructured.NestedFieldNoCopy(object, s.at.Replicas...); replicas != nil && replicas != int64(0) {
		spec["replicas"] = replicas
	}
	status := map[string]any{"replicas": int64(0)}
	if n, ok, _ := unstructured.NestedFieldNoCopy(object, s.at.StatusReplicas...); ok {
		status["replicas"] = n
	}
	if text := s.selector(object); text != "" {
		status["selector"] = text
	}
	return map[string]any{"apiVersion": s.apiVersion, "kind": "Scale", "metadata": meta, "spec": spec, "status": status}, nil
}

// checkReplicas returns an error if an object of a custom type has no value at
// specReplicasPath: there is no scale to return then.
func (s scale) checkReplicas(object map[string]any) error {
	if _, ok, _ := unstructured.NestedFieldNoCopy(object, s.at.Replicas...); ok || s.at == usualScale {
		return nil
	}
	return fmt.Errorf("the spec replicas field %q does not exist", "."+strings.Join(s.at.Replicas, "."))
}

// selector returns the object's label selector in its string form, which is also how custom
// types store it; "" when there is none.
func (s scale) selector(object map[string]any) string {
	if len(s.at.Selector) == 0 {
		return ""
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object, s.at.Selector...)
	if labels, ok := value.(map[string]any); ok {
		return selectorText(labels)
	}
	text, _ := value.(string)
	return text
}

func (s scale) Put(object, body map[string]any) (map[string]any, error) {
	next := Copy(object)
	meta := strategy.Metadata(body)
	for _, field := range []string{"name", "namespace", "resourceVersion", "uid"} {
		if v, ok := meta[field]; ok {
			strategy.Metadata(next)[field] = v
		}
	}
	n, _, _ := unstructured.NestedInt64(body, "spec", "replicas")
	name, _ := meta["name"].(string)
	if n < 0 {
		return nil, services.Invalid("autoscaling", "Scale", name, []services.StatusCause{{Reason: services.CauseInvalid,
			Field: "spec.replicas", Message: fmt.Sprintf("Invalid value: %d: must be greater than or equal to 0", n)}})
	}
	if err := unstructured.SetNestedField(next, n, s.at.Replicas...); err != nil {
		return nil, services.BadRequest("%s %q has no place for replicas: %v", next["kind"], name, err)
	}
	return next, nil
}

// selectorText returns a label selector, or a plain map of labels, in the syntax of query
// parameters; "" when it is invalid.
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
	parsed, err := labelselector.Parse(&typed)
	if err != nil {
		return ""
	}
	return parsed.String()
}
