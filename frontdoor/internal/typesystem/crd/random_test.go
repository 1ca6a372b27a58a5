package crd_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	randomSeed    = flag.Uint64("schema-seed", 1, "first seed of the random schemas")
	randomSchemas = flag.Int("schemas", 500, "number of random schemas")
)

// TestRandomSchemas: random objects of random structural schemas are pruned, defaulted and validated as the
// library does that kube-apiserver is made of. A failure names its seed: -args -schema-seed N -schemas 1.
func TestRandomSchemas(t *testing.T) {
	base := later(t, vocabulary.K8s())
	for i := range *randomSchemas {
		seed := *randomSeed + uint64(i) //nolint:gosec // not negative
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
		schema := map[string]any{"type": "object", "properties": map[string]any{"spec": g.schema(3)}}
		reference, ok := newReference(t, schema)
		if !ok {
			continue
		}
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		w := base.add(t, base.widgets(t, string(text)))
		for range 12 {
			spec, err := json.Marshal(g.value(schema["properties"].(map[string]any)["spec"].(map[string]any), 3))
			if err != nil {
				t.Fatal(err)
			}
			want, causes := reference.write(t, spec)
			got, refused := w.write(t, `{"spec":`+string(spec)+`}`)
			if problem := differs(want, causes, got, refused); problem != "" {
				t.Fatalf("seed %d: schema %s\nspec %s\n%s", seed, text, spec, problem)
			}
		}
	}
}

// differs says how a result differs from the reference; "" if it does not.
func differs(want map[string]any, causes []string, got map[string]any, refused error) string {
	var found []string
	if s := services.AsStatus(refused); refused != nil && s.Details != nil {
		for _, c := range s.Details.Causes {
			found = append(found, c.Field+": "+c.Message)
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, causes) {
		return fmt.Sprintf("causes\n  %s\nwant\n  %s", strings.Join(found, "\n  "), strings.Join(causes, "\n  "))
	}
	if refused == nil && !tree.Equal(want["spec"], got["spec"]) {
		return fmt.Sprintf("stored %v\nwant   %v", got["spec"], want["spec"])
	}
	return ""
}

// reference does what kube-apiserver does to a custom object that is created.
type reference struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

// newReference returns false for a schema that definitions may not have.
func newReference(t *testing.T, schema map[string]any) (r reference, ok bool) {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.JSONSchemaProps
	var props apiextensions.JSONSchemaProps
	if err := json.Unmarshal(raw, &v1); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &props, nil); err != nil {
		t.Fatal(err)
	}
	if r.structural, err = structuralschema.NewStructural(&props); err != nil || len(structuralschema.ValidateStructural(nil, r.structural)) > 0 {
		return r, false
	}
	if invalid, err := defaulting.ValidateDefaults(t.Context(), nil, r.structural, true, true); err != nil || len(invalid) > 0 {
		return r, false
	}
	if r.validator, _, err = validation.NewSchemaValidator(&props); err != nil {
		t.Fatal(err)
	}
	return r, true
}

// write returns the object that is stored, and the causes for which it is refused.
func (r reference) write(t *testing.T, spec []byte) (object map[string]any, causes []string) {
	t.Helper()
	text := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"default"},"spec":` + string(spec) + `}`
	if err := utiljson.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, r.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, r.structural)
	defaulting.Default(object, r.structural)
	for _, e := range append(validation.ValidateCustomResource(nil, object, r.validator), listtype.ValidateListSetsAndMaps(nil, r.structural, object)...) {
		causes = append(causes, e.Field+": "+e.ErrorBody())
	}
	slices.Sort(causes)
	return object, slices.Compact(causes)
}

// generator makes schemas and objects. It leaves out what the library does by mistake: defaults of the values
// of maps are neither validated nor pruned, those with nulls keep them, and an unknown format lets a default
// pass.
type generator struct {
	*rand.Rand
	maps int // that surround the schema
}

func (g *generator) one(of ...any) any { return of[g.IntN(len(of))] }

func (g *generator) often(percent int) bool { return g.IntN(100) < percent }

// schema returns a structural schema of a depth.
func (g *generator) schema(depth int) map[string]any {
	s := map[string]any{}
	kind := g.one("object", "object", "array", "string", "integer", "number", "boolean", "map", "anything", "int-or-string")
	if depth == 0 {
		kind = g.one("string", "integer", "number", "boolean", "int-or-string")
	}
	if depth == 3 {
		kind = "object"
	}
	switch kind {
	case "object":
		s["type"] = "object"
		properties := map[string]any{}
		for _, name := range []string{"a", "b", "c", "d"} {
			if g.often(70) {
				properties[name] = g.schema(depth - 1)
			}
		}
		s["properties"] = properties
		if g.often(20) {
			s["required"] = []any{g.one("a", "b")}
		}
		if g.often(10) {
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
		g.combine(s, map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}}, map[string]any{"required": []any{"c", "d"}}, map[string]any{"minProperties": 2})
	case "map":
		g.maps++
		s["type"], s["additionalProperties"] = "object", g.schema(depth-1)
		g.maps--
		if g.often(20) {
			s["maxProperties"] = g.IntN(3)
		}
	case "array":
		s["type"], s["items"] = "array", g.schema(depth-1)
		if g.often(20) {
			s[g.one("minItems", "maxItems").(string)] = g.IntN(3)
		}
		if g.often(15) {
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
		if g.often(25) {
			s["items"] = map[string]any{"type": g.one("string", "integer")}
			s["x-kubernetes-list-type"] = "set"
		} else if g.often(30) {
			s["items"] = map[string]any{"type": "object", "required": []any{"k"}, "properties": map[string]any{"k": map[string]any{"type": "string"}, "v": g.schema(0)}}
			s["x-kubernetes-list-type"], s["x-kubernetes-list-map-keys"] = "map", []any{"k"}
		}
	case "anything":
		s["x-kubernetes-preserve-unknown-fields"] = true
		if g.often(50) {
			s["type"] = "object"
		}
	case "int-or-string":
		s["x-kubernetes-int-or-string"] = true
		if g.often(50) {
			s["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
		}
	case "string":
		s["type"] = "string"
		for _, x := range []struct {
			name  string
			value any
		}{{"minLength", g.IntN(3)}, {"maxLength", 1 + g.IntN(3)}, {"pattern", "^a"}, {"enum", []any{"a", "ab", "z"}}, {"format", g.one("ipv4", "date-time", "byte")}} {
			if g.often(15) {
				s[x.name] = x.value
			}
		}
		g.combine(s, map[string]any{"pattern": "^a"}, map[string]any{"minLength": 2}, map[string]any{"enum": []any{"a", "b"}})
	case "integer", "number":
		s["type"] = kind
		for _, name := range []string{"minimum", "maximum", "multipleOf"} {
			if kind == "integer" && g.often(15) {
				s[name] = map[string]int{"minimum": 2, "maximum": 9, "multipleOf": 2}[name]
			}
		}
		if kind == "integer" && g.often(15) {
			s["format"] = g.one("int32", "int64")
		}
		g.combine(s, map[string]any{"minimum": 3}, map[string]any{"maximum": 5})
	case "boolean":
		s["type"] = "boolean"
	}
	if g.often(15) {
		s["nullable"] = true
	}
	if value := g.value(s, depth); g.often(15) && depth < 3 && g.maps == 0 && !hasNull(value) {
		s["default"] = value
	}
	return s
}

// combine adds combinators of some conditions.
func (g *generator) combine(s map[string]any, conditions ...any) {
	if !g.often(20) {
		return
	}
	first, second := g.one(conditions...), g.one(conditions...)
	switch g.IntN(4) {
	case 0:
		s["not"] = first
	default:
		s[g.one("anyOf", "oneOf", "allOf").(string)] = []any{first, second}
	}
}

// value returns a value for a schema, which often fits it.
func (g *generator) value(s map[string]any, depth int) any {
	if g.often(4) {
		return g.one(nil, true, "a", int64(1), 2.5, []any{}, []any{"x"}, map[string]any{}, map[string]any{"a": int64(1)})
	}
	switch s["type"] {
	case "object":
		object := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		for _, name := range []string{"a", "b", "c", "d", "k", "v", "unknown"} {
			if below, declared := properties[name].(map[string]any); declared && g.often(60) {
				object[name] = g.value(below, depth-1)
			} else if below, isMap := s["additionalProperties"].(map[string]any); isMap && g.often(20) {
				object[name] = g.value(below, depth-1)
			} else if g.often(5) {
				object[name] = g.one("x", nil, map[string]any{"y": int64(1)})
			}
		}
		return object
	case "array":
		items := []any{}
		for range g.IntN(4) {
			items = append(items, g.value(s["items"].(map[string]any), depth-1))
		}
		return items
	case "string":
		return g.one("", "a", "ab", "abc", "b", "z", "1.2.3.4", "2020-01-01T00:00:00Z")
	case "integer":
		return g.one(int64(0), int64(1), int64(2), int64(4), int64(7), int64(10), int64(3000000000))
	case "number":
		return g.one(int64(0), int64(4), 2.5, 7.25)
	case "boolean":
		return g.often(50)
	}
	if s["x-kubernetes-int-or-string"] == true {
		return g.one("a", int64(5))
	}
	return g.one("x", int64(1), nil, map[string]any{"y": []any{nil, "z"}})
}

// hasNull reports whether a value has a null.
func hasNull(value any) bool {
	raw, err := json.Marshal(value)
	return err != nil || strings.Contains(string(raw), "null")
}
