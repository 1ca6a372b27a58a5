package typesystem_test

import (
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestLasting: the engine of a watch shows objects of its type as the whole one does, in each version, and does not hold
// that one.
func TestLasting(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	builtIn, err := typesystem.New(types, typesystem.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	object, err := tree.Decode([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com","uid":"u"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"c"}}}}},
		{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"b":{"type":"string"}}}}}]},
		"status":{"acceptedNames":{"plural":"widgets","kind":"Widget"},"conditions":[{"type":"Established","status":"True"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	definition, err := crd.Compile(object, crd.Setting{Vocabulary: vocabulary.K8s(), Types: types, Revision: 10})
	if err != nil {
		t.Fatal(err)
	}
	stored := services.Object{Revision: 5, JSON: []byte(`{"apiVersion":"example.com/v1","kind":"Widget","a":"x"}`)} // before the definition has these schemas
	for version, want := range map[string]string{"v1": `"b":"c"`, "v2": `{"apiVersion":"example.com/v2","b":"c"`} {
		whole := builtIn.With([]crd.Definition{definition})
		widgets, _ := whole.Types.Lookup("example.com", version, "widgets")
		shown, err := whole.View(t.Context(), stored, widgets)
		if err != nil || !strings.Contains(string(shown.JSON), want) {
			t.Errorf("%s: %s, %v, want %s", version, shown.JSON, err, want)
		}
		lasting := whole.Lasting(widgets)
		if again := whole.Lasting(widgets); again != lasting {
			t.Error("two watches of a type have different engines")
		}
		if own, err := lasting.View(t.Context(), stored, widgets); err != nil || string(own.JSON) != string(shown.JSON) {
			t.Errorf("%s: the engine of a watch shows %s, %v", version, own.JSON, err)
		}
		held := weak.Make(whole)
		runtime.KeepAlive(whole)
		whole = nil
		runtime.GC()
		if held.Value() != nil {
			t.Errorf("%s: the engine of a watch holds all types of its start", version)
		}
		runtime.KeepAlive(lasting)
	}
	pods, _ := types.Lookup("", "v1", "pods")
	if whole := builtIn.With([]crd.Definition{definition}); whole.Lasting(pods) != builtIn {
		t.Error("the engine of a watch of pods knows custom types")
	}
}
