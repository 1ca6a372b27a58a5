package fragments

import (
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/reduce"
)

// TestAppendSchema: schemas of all fields, set at random, are encoded as the library does.
func TestAppendSchema(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		s := randomSchema(random, 0)
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "a schema", func(to io.Writer) error {
			got, err := appendSchema(nil, s)
			if err == nil {
				_, err = to.Write(got)
			}
			return err
		}, want)
		if t.Failed() {
			break
		}
	}
	infinite := math.Inf(1)
	if _, err := appendSchema(nil, spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{{SchemaProps: spec.SchemaProps{Maximum: &infinite}}}}}); err == nil {
		t.Error("an infinite number has a text")
	}
}

// TestMessageOf: schemas of all fields that version 2 has, set at random, are the messages that the library parses.
func TestMessageOf(t *testing.T) {
	random, whole := rand.New(rand.NewPCG(1, 2)), 0
	for range 1_000 {
		one := randomSchema(random, 0)
		s := reduce.Document(&spec.Swagger{SwaggerProps: spec.SwaggerProps{Definitions: spec.Definitions{"a": one}}}).Definitions["a"]
		want, refused := parseSchema(&s)
		got, err := messageOf(&s)
		if (err == nil) != (refused == nil) || err == nil && !proto.Equal(got, want) {
			t.Fatalf("got  %v (%v)\nwant %v (%v)", got, err, want, refused)
		}
		if err == nil {
			whole++
		}
	}
	if whole == 0 {
		t.Error("no schema has a message")
	}
}

// TestAppendSchemaFields: there is no field of which appendSchema does not know.
func TestAppendSchemaFields(t *testing.T) {
	for kind, want := range map[reflect.Type]int{
		reflect.TypeFor[spec.SchemaProps](): 35, reflect.TypeFor[spec.SwaggerSchemaProps](): 4, reflect.TypeFor[spec.Schema](): 4,
	} {
		if kind.NumField() != want {
			t.Errorf("%v has %d fields, want %d", kind, kind.NumField(), want)
		}
	}
}

// randomSchema returns a schema in which each field is set sometimes.
func randomSchema(r *rand.Rand, depth int) (s spec.Schema) {
	texts := []string{"", "plain text", `<a href="x">&`, "tab\there", "line\nend", "ä\u2028\u00a0", `back\slash`, "\x00\x1f\x7f", "😀"}
	values := []any{nil, true, int64(7), 1.5, 1e21, 1e-7, "te<xt", []any{"a", int64(1)}, map[string]any{"z": "&", "a": nil}, map[string]any{}, []any{},
		[]any{map[string]any{"kind": "Thing", "group": "a.example.com"}, map[string]any{"version": "v1"}}, []any{map[string]any{"kind": "No"}}, []any{map[string]any{"a": "b", "c": true}}}
	text := func() string { return texts[r.IntN(len(texts))] }
	some := func() bool { return r.IntN(6) == 0 }
	number := func() *int64 {
		if n := int64(r.IntN(4) - 1); some() {
			return &n
		}
		return nil
	}
	float := func() *float64 {
		if f := []float64{0, -1.5, 1e30, 3}[r.IntN(4)]; some() {
			return &f
		}
		return nil
	}
	below := func() *spec.Schema {
		if depth > 2 || !some() {
			return nil
		}
		one := randomSchema(r, depth+1)
		return &one
	}
	list := func() (all []spec.Schema) {
		for range 2 {
			if one := below(); one != nil {
				all = append(all, *one)
			}
		}
		return all
	}
	named := func() map[string]spec.Schema {
		all := map[string]spec.Schema{}
		for range 3 {
			if one := below(); one != nil {
				all[text()] = *one
			}
		}
		return all
	}
	s.Description, s.Format, s.Title, s.Pattern = text(), text(), text(), text()
	s.Type = [][]string{nil, {"string"}, {"object", "null"}, {}}[r.IntN(4)]
	s.Nullable, s.ExclusiveMaximum, s.ExclusiveMinimum, s.UniqueItems = some(), some(), some(), some()
	s.Default, s.Example = values[r.IntN(len(values))], values[r.IntN(len(values))]
	s.Maximum, s.Minimum, s.MultipleOf = float(), float(), float()
	s.MaxLength, s.MinLength, s.MaxItems, s.MinItems, s.MaxProperties, s.MinProperties = number(), number(), number(), number(), number(), number()
	s.Enum = [][]any{nil, {}, values}[r.IntN(3)]
	s.Required = [][]string{nil, {}, texts}[r.IntN(3)]
	if one := below(); one != nil {
		s.Items = &spec.SchemaOrArray{Schema: one}
	}
	s.AllOf, s.OneOf, s.AnyOf, s.Not, s.Properties = list(), list(), list(), below(), named()
	if some() {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: some(), Schema: below()}
	}
	if some() {
		s.Extensions = spec.Extensions{"x-a": values[r.IntN(len(values))], "X-b": true, "no": 1, "x-Ä<": text()}
	}
	if some() {
		s.Ref = spec.MustCreateRef("#/definitions/a.b~1<c>")
	}
	switch r.IntN(60) { // what the library encodes
	case 0:
		s.ID = text()
	case 1:
		s.ExternalDocs = &spec.ExternalDocumentation{URL: text()}
	case 2:
		s.ReadOnly, s.Discriminator = true, text()
	case 3:
		s.ExtraProps = map[string]any{"extra": text()}
	case 4:
		s.PatternProperties, s.Definitions = named(), named()
	case 5:
		s.Items, s.AdditionalItems = &spec.SchemaOrArray{Schemas: list()}, &spec.SchemaOrBool{}
	}
	return s
}
