package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

const paintDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: paints.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: paints, singular: paint, kind: Paint, listKind: PaintList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {color: {type: string}, coats: {type: integer}}}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {color: {type: string}, coats: {type: integer}, gloss: {type: boolean}}}`

// paints is a client of paints.
type paints struct {
	dynamic.ResourceInterface
	t *testing.T
}

func (p paints) create(name, color string) {
	p.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Paint", "metadata": map[string]any{"name": name}, "spec": map[string]any{"color": color, "coats": int64(1)}}}
	if _, err := p.Create(p.t.Context(), object, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// paint changes an object and returns its resourceVersion.
func (p paints) paint(name, patch string) string {
	p.t.Helper()
	object, err := p.Patch(p.t.Context(), name, types.MergePatchType, []byte(`{"spec":`+patch+`}`), metav1.PatchOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return object.GetResourceVersion()
}

// names lists the names of selected objects, in pages of a size.
func (p paints) names(selector string, limit int64) (names []string, revision string) {
	p.t.Helper()
	for options := (metav1.ListOptions{FieldSelector: selector, Limit: limit}); ; {
		list, err := p.List(p.t.Context(), options)
		if err != nil {
			p.t.Fatalf("%s: %v", selector, err)
		}
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return names, list.GetResourceVersion()
		}
	}
}

// TestSelectableFields selects custom objects by fields, some of them from before their
// definition declares the fields as selectable.
func TestSelectableFields(t *testing.T) {
	t.Parallel()
	c := startAllInOne(t, vocabulary.K8s(), "--emulated-version=1.36").Cluster
	client := c.Client(t)
	namespace := newNamespace(t, client)
	of := func(version string) paints {
		return paints{client.Resource(schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "paints"}).Namespace(namespace), t}
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(paintDefinition), &definition.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := of("v1")
	eventually(t, "the type is served", func() bool { _, err := p.List(t.Context(), metav1.ListOptions{}); return err == nil })
	p.create("a", "red")
	p.create("b", "blue")
	_, before := p.names("metadata.name=a", 0)
	p.paint("a", `{"color":"green"}`)
	p.paint("a", `{"color":"red"}`)
	if _, err := p.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that is not selectable: %v", err)
	}
	declare := func(paths ...string) error {
		list := make([]string, len(paths))
		for i, path := range paths {
			list[i] = `{"jsonPath":"` + path + `"}`
		}
		fields := "[" + strings.Join(list, ",") + "]"
		_, err := definitions.Patch(t.Context(), "paints.example.com", types.JSONPatchType,
			[]byte(`[{"op":"add","path":"/spec/versions/0/selectableFields","value":`+fields+`},{"op":"add","path":"/spec/versions/1/selectableFields","value":[{"jsonPath":".spec.gloss"},{"jsonPath":".spec.color"}]}]`), metav1.PatchOptions{})
		return err
	}
	if err := declare(".spec"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".spec\": must point to a field of type string, boolean or integer") {
		t.Errorf("an object as a field: %v", err)
	}
	if err := declare(".spec.color", ".spec.coats"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fields are selectable", func() bool {
		_, err := p.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"})
		return err == nil
	})
	p.create("c", "red")
	p.create("d", "white")
	for selector, want := range map[string]string{"spec.color=red": "a c", "spec.color!=red": "b d", "spec.color=red,spec.coats=1": "a c", "spec.coats=2": "", "spec.color=red,metadata.name=c": "c"} {
		for _, limit := range []int64{0, 1, 2} {
			if names, _ := p.names(selector, limit); strings.Join(names, " ") != want {
				t.Errorf("%s, limit %d: %v, want %s", selector, limit, names, want)
			}
		}
	}
	if names, _ := of("v2").names("spec.color=red,spec.gloss=", 0); !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("in v2: %v", names)
	}
	for version, field := range map[string]string{"v1": "spec.gloss", "v2": "spec.coats"} {
		if _, err := of(version).List(t.Context(), metav1.ListOptions{FieldSelector: field + "=1"}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported: "+field) {
			t.Errorf("a field of the other version than %s: %v", version, err)
		}
	}
	testWatchOfSelected(t, p, before)
	if err := p.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.color=white"}); err != nil {
		t.Error(err)
	}
	if names, _ := p.names("", 0); !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("after the deletion of what is white: %v", names)
	}
	typed, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/example.com/v1"} {
		eventually(t, path+" names the fields", func() bool { // that of v2 is made while an earlier one is served
			var published any
			raw, err := typed.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
			return err == nil && json.Unmarshal(raw, &published) == nil && strings.Contains(string(raw), `"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"},{"fieldPath":"spec.coats"}]`)
		})
	}
}

// testWatchOfSelected watches what is red; before is a revision from before the fields were
// selectable.
func testWatchOfSelected(t *testing.T, p paints, before string) {
	t.Helper()
	_, now := p.names("spec.color=red", 0)
	red, err := p.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red", ResourceVersion: now})
	if err != nil {
		t.Fatal(err)
	}
	defer red.Stop()
	p.paint("d", `{"coats":2}`)
	p.paint("a", `{"color":"blue"}`) // recorded for the first time
	p.paint("b", `{"color":"red"}`)
	p.paint("c", `{"coats":3}`)
	p.paint("b", `{"color":"blue"}`)
	expect := func(w watch.Interface, kind watch.EventType, name, color string) {
		t.Helper()
		select {
		case e := <-w.ResultChan():
			object, _ := e.Object.(*unstructured.Unstructured)
			if object == nil {
				t.Fatalf("%v %+v", e.Type, e.Object)
			}
			if got, _, _ := unstructured.NestedString(object.Object, "spec", "color"); e.Type != kind || object.GetName() != name || got != color {
				t.Errorf("%s %s %q, want %s %s %q", e.Type, object.GetName(), got, kind, name, color)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no event %s %s", kind, name)
		}
	}
	expect(red, watch.Deleted, "a", "red")
	expect(red, watch.Added, "b", "red")
	expect(red, watch.Modified, "c", "red")
	expect(red, watch.Deleted, "b", "red")
	initial, err := p.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"})
	if err != nil {
		t.Fatal(err)
	}
	defer initial.Stop()
	expect(initial, watch.Added, "c", "red")
	old, err := p.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red", ResourceVersion: before})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Stop()
	select {
	case e := <-old.ResultChan():
		if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) {
			t.Errorf("a watch of before the fields were selectable: %v %+v", e.Type, e.Object)
		}
	case <-time.After(20 * time.Second):
		t.Error("a watch of before the fields were selectable waits")
	}
}
