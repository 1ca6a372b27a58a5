package versions

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/services/golden"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	first = flag.Uint64("seed", 1, "the first seed of generated objects")
	seeds = flag.Uint64("seeds", 8, "how many objects are generated per pair of versions")
)

// world is the catalogue and the conversions of a vocabulary.
type world struct {
	Versions
	types *catalogue.Catalogue
}

func newWorld(t testing.TB, v vocabulary.Vocabulary) world {
	t.Helper()
	types, err := catalogue.New(catalogue.Options{Vocabulary: v, RuntimeConfig: runtimeconfig.Config{"api/alpha": true}})
	if err != nil {
		t.Fatal(err)
	}
	return world{New(v), types}
}

// kinds returns the served versions of every kind that has several.
func (w world) kinds() map[string][]*catalogue.Type {
	kinds := map[string][]*catalogue.Type{}
	for _, g := range w.types.Groups() {
		for _, v := range g.Versions {
			for _, t := range v.Types {
				kinds[t.Key.String()] = append(kinds[t.Key.String()], t)
			}
		}
	}
	for key, types := range kinds {
		if len(types) < 2 {
			delete(kinds, key)
		}
	}
	return kinds
}

func (w world) through(t *testing.T, object map[string]any, types ...*catalogue.Type) map[string]any {
	t.Helper()
	for _, to := range types {
		before := runtime.DeepCopyJSON(object)
		converted, err := w.Convert(context.Background(), object, to)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(before, object) {
			t.Fatalf("the conversion to %s modified the object", to.APIVersion())
		}
		if converted["apiVersion"] != to.APIVersion() || converted["kind"] != to.Kind {
			t.Fatalf("says %v %v", converted["apiVersion"], converted["kind"])
		}
		for _, path := range w.unknown(converted, to.Schema(), "") {
			t.Errorf("%s %s has no field %s", to.APIVersion(), to.Kind, path)
		}
		object = converted
	}
	return object
}

// gaining are the kinds whose round trip adds fields, because the version in between
// requires them.
var gaining = map[string]bool{
	"Ingress": true, "HorizontalPodAutoscaler": true, "CustomResourceDefinition": true, "EndpointSlice": true, "CertificateSigningRequest": true,
}

// TestRoundTrip converts generated objects of every kind with several versions from each
// version through each other and back.
func TestRoundTrip(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		w := newWorld(t, v)
		kinds := w.kinds()
		t.Logf("%d kinds, seeds %d to %d", len(kinds), *first, *first+*seeds-1)
		for key, types := range kinds {
			t.Run(v.Name+"/"+key, func(t *testing.T) {
				for _, from := range types {
					for _, to := range types {
						for _, by := range types {
							for seed := *first; seed < *first+*seeds && from != to && to != by && !t.Failed(); seed++ {
								w.roundTrip(t, seed, from, to, by)
							}
						}
					}
				}
			})
		}
	}
}

func (w world) roundTrip(t *testing.T, seed uint64, from, to, by *catalogue.Type) {
	t.Helper()
	object := newGenerator(w.types, w.vocabulary, seed).object(from)
	back := w.through(t, object, to, by, from)
	lost := missing(back, object, "")
	if !gaining[from.Kind] && !reflect.DeepEqual(back, object) {
		lost = append(lost, "(not the same)")
	}
	if again := w.through(t, back, to, by, from); !reflect.DeepEqual(again, back) {
		lost = append(lost, "(another at the second time)")
	}
	if len(lost) > 0 || t.Failed() {
		t.Errorf("seed %d, %s to %s to %s and back lost %s:\n%s\nbecame\n%s\nbecame\n%s", seed, from.APIVersion(), to.APIVersion(), by.APIVersion(),
			strings.Join(lost, ", "), dump(t, object), dump(t, w.through(t, object, to)), dump(t, back))
	}
}

// missing returns the paths of values in want that got does not have.
func missing(got, want any, at string) (paths []string) {
	switch want := want.(type) {
	case map[string]any:
		m, _ := got.(map[string]any)
		for name, value := range want {
			paths = append(paths, missing(m[name], value, at+"."+name)...)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return []string{at}
		}
		for i, value := range want {
			paths = append(paths, missing(list[i], value, fmt.Sprintf("%s[%d]", at, i))...)
		}
	default:
		if got != want {
			paths = append(paths, at)
		}
	}
	return paths
}

// unknown returns the paths of an object that are not in its schema.
func (w world) unknown(value any, s *spec.Schema, at string) (paths []string) {
	s = w.types.Resolve(s)
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			property, ok := s.Properties[name]
			switch {
			case ok:
				paths = append(paths, w.unknown(member, &property, at+"."+name)...)
			case s.AdditionalProperties == nil && len(s.Properties) > 0:
				paths = append(paths, at+"."+name)
			}
		}
	case []any:
		if s.Items == nil {
			return []string{at}
		}
		for _, item := range value {
			paths = append(paths, w.unknown(item, s.Items.Schema, at+"[]")...)
		}
	}
	return paths
}

// testCase is one case: an object, a version, the conversion to it, and the conversion back
// if that is not the object itself.
type testCase struct {
	Vocabulary string         `json:"vocabulary,omitempty"`
	Given      map[string]any `json:"given"`
	As         string         `json:"as"`
	Gives      map[string]any `json:"gives,omitempty"`
	Back       map[string]any `json:"back,omitempty"`
}

// TestGolden runs all cases in testdata. After an intended change, run it with -update and
// review the difference.
func TestGolden(t *testing.T) {
	worlds := map[string]world{"": newWorld(t, vocabulary.Platform()), "k8s": newWorld(t, vocabulary.K8s())}
	golden.Run(t, func(t *testing.T, _ string, c testCase) testCase { return worlds[c.Vocabulary].run(t, c) })
}

func (w world) run(t *testing.T, c testCase) testCase {
	t.Helper()
	text, err := json.Marshal(c.Given)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
		t.Fatal(err)
	}
	from, to := w.typed(t, object["apiVersion"].(string), object["kind"].(string)), w.typed(t, c.As, object["kind"].(string))
	c.Gives, c.Back = w.through(t, object, to), nil
	if back := w.through(t, c.Gives, from); !reflect.DeepEqual(back, object) {
		c.Back = back
	}
	return c
}

func (w world) typed(t *testing.T, apiVersion, kind string) *catalogue.Type {
	t.Helper()
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	found, ok := w.types.ByKind(group, version, kind)
	if !ok {
		t.Fatalf("no %s in %s", kind, apiVersion)
	}
	return found
}

func dump(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAmong(t *testing.T) {
	w := newWorld(t, vocabulary.Platform())
	convert := w.Among(w.types)
	ingress := w.typed(t, "networking.platform.io/v1", "Ingress")
	object := map[string]any{"apiVersion": ingress.APIVersion(), "kind": "Ingress", "spec": map[string]any{"defaultBackend": map[string]any{}}}
	old, err := convert(ingress, object, "extensions/v1beta1")
	if err != nil || tree.Child(tree.Child(old, "spec"), "backend") == nil {
		t.Errorf("%v %v", old, err)
	}
	for _, version := range []string{"networking.platform.io/v9", "v1", "nobody/v1"} {
		if _, err := convert(ingress, object, version); !errors.Is(err, catalogue.ErrNoVersion) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
