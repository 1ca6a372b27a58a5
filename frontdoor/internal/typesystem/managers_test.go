package typesystem_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// engineOf returns an engine with the custom type widgets.example.com, whose version v1 is stored and
// has the fields a, b, n and the list l, and whose version v2 lacks b, also in the items of l.
func engineOf(t *testing.T) *typesystem.Engine {
	t.Helper()
	v := vocabulary.K8s()
	types, err := catalogue.New(catalogue.Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	e, err := typesystem.New(types, typesystem.Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	version := func(name string, stored bool, b string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
			%s"a":{"type":"integer"},"n":{"type":"number"},"i":{"type":"integer"},"m":{"type":"object","additionalProperties":{"type":"number"}},
			"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"number"}},
			"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{%s"k":{"type":"string"},"a":{"type":"integer"}}}}}}}}}}`,
			name, stored, b, b)
	}
	definition, err := tree.Decode([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[` +
		version("v1", true, `"b":{"type":"integer"},`) + `,` + version("v2", false, "") + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	crd.Claims{Types: types, Vocabulary: v, Now: time.Unix(0, 0)}.Establish(definition, nil)
	d, err := crd.Compile(definition, crd.Setting{Types: types, Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	return e.With([]crd.Definition{d})
}

// widget is an object that is written through its versions.
type widget struct {
	*testing.T
	*typesystem.Engine
	object map[string]any
}

func (w *widget) of(version string) (*catalogue.Type, map[string]any) {
	w.Helper()
	ty, ok := w.Types.Lookup("example.com", version, "widgets")
	if !ok {
		w.Fatal("widgets are not served")
	}
	if w.object == nil {
		return ty, nil
	}
	live, err := w.Versions.Convert(w.Context(), w.object, ty)
	if err != nil {
		w.Fatal(err)
	}
	live = tree.Copy(live).(map[string]any)
	w.Schemas.Drop(ty, live)
	return ty, live
}

func (w *widget) apply(version, manager, spec string) error {
	w.Helper()
	ty, live := w.of(version)
	body := `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":{"name":"x"},"spec":` + spec + `}`
	next, _, err := w.Merge.Patch(w.Context(), fieldmanager.PatchRequest{Type: ty, MediaType: fieldmanager.MediaTypeApply, Body: []byte(body), Current: live, Manager: manager})
	if err == nil {
		w.store(next)
	}
	return err
}

func (w *widget) merge(version, manager, body string) error {
	w.Helper()
	ty, live := w.of(version)
	next, _, err := w.Merge.Patch(w.Context(), fieldmanager.PatchRequest{Type: ty, MediaType: fieldmanager.MediaTypeMerge, Body: []byte(body), Current: live, Manager: manager})
	if err == nil {
		err = w.Merge.Track(fieldmanager.Change{Type: ty, Live: live, New: next, Manager: manager})
		w.store(next)
	}
	return err
}

// store encodes and decodes an object, as the store does.
func (w *widget) store(object map[string]any) {
	w.Helper()
	raw, err := tree.Encode(object)
	if err == nil {
		w.object, err = tree.Decode(raw)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// owned returns the managers with their operation, version and fields of the spec.
func (w *widget) owned() string {
	var all []string
	list, _ := tree.Child(w.object, "metadata")["managedFields"].([]any)
	for _, item := range list {
		entry := item.(map[string]any)
		raw, err := tree.Encode(tree.Child(entry, "fieldsV1"))
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, fmt.Sprint(entry["manager"], " ", entry["operation"], " ", entry["apiVersion"], " ", string(raw)))
	}
	return strings.Join(all, "; ")
}

// TestOwnersOfOtherVersions: a field that only one version has leaves the managers of other versions
// what they own, in every kind of write, and is not lost by an apply through either.
func TestOwnersOfOtherVersions(t *testing.T) {
	const mine = `a Apply example.com/v2 {"f:spec":{"f:a":{}}}`
	for name, write := range map[string]func(w *widget) error{
		"apply": func(w *widget) error { return w.apply("v1", "b", `{"b":1}`) },
		"merge": func(w *widget) error { return w.merge("v1", "u", `{"spec":{"b":1}}`) },
		"list":  func(w *widget) error { return w.merge("v1", "u", `{"spec":{"b":1,"l":[{"k":"x","a":1,"b":2}]}}`) },
	} {
		w := &widget{T: t, Engine: engineOf(t)}
		if err := w.apply("v2", "a", `{"a":1}`); err != nil {
			t.Fatal(err)
		}
		if err := write(w); err != nil || !strings.Contains(w.owned(), mine) {
			t.Fatalf("%s: %v: %s", name, err, w.owned())
		}
		// Others change what both versions have, and the first manager applies through v1: all is kept.
		if err := w.apply("v1", "c", `{"i":3,"l":[{"k":"y","b":5}]}`); err != nil || !strings.Contains(w.owned(), mine) {
			t.Fatalf("%s: %v: %s", name, err, w.owned())
		}
		if err := w.apply("v1", "a", `{"n":1.5}`); err != nil {
			t.Fatal(name, err)
		}
		spec := tree.Child(w.object, "spec")
		if spec["a"] != nil || spec["b"] != int64(1) || spec["n"] != 1.5 || !strings.Contains(fmt.Sprint(spec["l"]), "map[b:5 k:y]") ||
			name == "list" && !strings.Contains(fmt.Sprint(spec["l"]), "map[a:1 b:2 k:x]") {
			t.Errorf("%s: %v", name, spec)
		}
	}
}

// TestRemovalThroughOtherVersion: a manager still gives up its fields through its own version.
func TestRemovalThroughOtherVersion(t *testing.T) {
	w := &widget{T: t, Engine: engineOf(t)}
	for _, err := range []error{w.apply("v2", "a", `{"a":1}`), w.merge("v1", "u", `{"spec":{"b":1}}`), w.apply("v2", "a", `{}`)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if spec, isObject := w.object["spec"].(map[string]any); !isObject || spec["a"] != nil {
		t.Errorf("the spec is %v", w.object["spec"])
	}
	// Where no manager owns anything else in any version, null is the result, as in Kubernetes.
	w = &widget{T: t, Engine: engineOf(t)}
	for _, err := range []error{w.apply("v2", "a", `{"a":1}`), w.apply("v2", "a", `{}`)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if spec, exists := w.object["spec"]; !exists || spec != nil {
		t.Errorf("the spec is %v", spec)
	}
}

// TestConversionAway: while a conversion fails, an apply fails as a failure of the service, and other
// writes record their manager and keep the entries of other versions.
func TestConversionAway(t *testing.T) {
	w := &widget{T: t, Engine: engineOf(t)}
	if err := w.apply("v2", "a", `{"a":1}`); err != nil {
		t.Fatal(err)
	}
	_, w.object = w.of("v1")
	e := *w.Engine
	e.Merge = fieldmanager.New(fieldmanager.Options{Vocabulary: vocabulary.K8s(), Types: e.Types,
		Convert: func(*catalogue.Type, map[string]any, string) (map[string]any, error) {
			return nil, &services.Status{Code: http.StatusInternalServerError, Message: "conversion webhook failed"}
		}})
	w.Engine = &e
	if s := services.AsStatus(w.apply("v1", "b", `{"b":1}`)); s == nil || s.Code != http.StatusInternalServerError {
		t.Errorf("apply: %v", s)
	}
	if err := w.merge("v1", "u", `{"spec":{"b":1}}`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`a Apply example.com/v2 {"f:spec":{"f:a":{}}}`, `u Update example.com/v1 {"f:spec":{"f:b":{}}}`} {
		if !strings.Contains(w.owned(), want) {
			t.Errorf("no %s: %s", want, w.owned())
		}
	}
}

// TestWholeFloats: applying whole floats again changes nothing, at any place.
func TestWholeFloats(t *testing.T) {
	for _, spec := range []string{`{"n":1.0}`, `{"n":1e2}`, `{"n":-0.0}`, `{"n":9007199254740993.0}`, `{"i":5.0}`, `{"m":{"x":1.0,"y":2.5}}`, `{"s":[1.0,2]}`, `{"s":[-0.0]}`,
		`{"l":[{"k":"x","a":1.0}]}`, `{"n":1.5}`, `{"n":1e21}`, `{"n":1e19}`} {
		w := &widget{T: t, Engine: engineOf(t)}
		if err := w.apply("v1", "a", spec); err != nil {
			t.Fatal(spec, err)
		}
		before := tree.Copy(w.object).(map[string]any)
		ty, live := w.of("v1")
		body := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":` + spec + `}`
		next, _, err := w.Merge.Patch(context.Background(), fieldmanager.PatchRequest{Type: ty, MediaType: fieldmanager.MediaTypeApply, Body: []byte(body), Current: live, Manager: "a"})
		if err != nil || !tree.Equal(before, next) {
			t.Errorf("%s: %v: %v became %v", spec, err, before, next)
		}
	}
}
