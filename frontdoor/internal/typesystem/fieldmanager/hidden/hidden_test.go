package hidden_test

import (
	"reflect"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/hidden"
)

func parse(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestFields takes fields out and puts them back into an object that has changed since.
func TestFields(t *testing.T) {
	item := spec.MapProperty(nil)
	item.AdditionalProperties = nil
	item.Properties = map[string]spec.Schema{"name": *spec.StringProperty(), "size": *spec.Int64Property()}
	schema := &spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{
		"spec": {SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"items": *spec.ArrayProperty(item), "sets": *spec.MapProperty(item), "any": {}}}}}}}
	resolve := func(s spec.Schema) *spec.Schema { return &s }
	const stored = `spec: {later: {a: 1}, any: {x: 1}, sets: {a: {size: 1, later: 2}}, items: [{name: a, size: 1, later: 3}, {name: b, later: 4}, {size: 5, later: 6}]}`
	given := parse(t, stored)
	known, fields := hidden.Take(given, schema, resolve)
	if want := parse(t, `spec: {any: {x: 1}, sets: {a: {size: 1}}, items: [{name: a, size: 1}, {name: b}, {size: 5}]}`); !reflect.DeepEqual(known, want) || len(fields) != 5 {
		t.Errorf("%d fields are hidden, the others are %v", len(fields), known)
	}
	if !reflect.DeepEqual(given, parse(t, stored)) {
		t.Error("the object has changed")
	}
	changed := parse(t, `spec: {any: {x: 2}, sets: {a: {size: 9}}, items: [{name: b}, {name: a, size: 7}, {size: 8}]}`)
	for _, f := range fields {
		f.PutBack(changed)
	}
	want := parse(t, `spec: {later: {a: 1}, any: {x: 2}, sets: {a: {size: 9, later: 2}}, items: [{name: b, later: 4}, {name: a, size: 7, later: 3}, {size: 8}]}`)
	if !reflect.DeepEqual(changed, want) {
		t.Errorf("put back: %v, want %v", changed, want)
	}
	gone := parse(t, `spec: {sets: 5}`)
	for _, f := range fields {
		f.PutBack(gone)
	}
	if want := parse(t, `spec: {sets: 5, later: {a: 1}}`); !reflect.DeepEqual(gone, want) {
		t.Errorf("put back where the places are gone: %v", gone)
	}
}
