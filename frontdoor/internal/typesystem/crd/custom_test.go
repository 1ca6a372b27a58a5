package crd_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/services/contracttest/growth"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// decode decodes YAML like objects, with integers as int64.
func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object, err := tree.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// world holds the types of a front door.
type world struct {
	vocabulary vocabulary.Vocabulary
	types      *catalogue.Catalogue
	schemas    *schema.Engine
}

// worlds has one shared world without custom types per vocabulary; they are immutable.
var worlds = map[string]func() (world, error){
	"platform": sync.OnceValues(func() (world, error) { return makeWorld(vocabulary.Platform()) }),
	"k8s":      sync.OnceValues(func() (world, error) { return makeWorld(vocabulary.K8s()) }),
}

func makeWorld(v vocabulary.Vocabulary) (world, error) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: v})
	if err != nil {
		return world{}, err
	}
	set, err := builtin.Read()
	if err != nil {
		return world{}, err
	}
	return world{v, types, schema.New(types, v, set.Definitions)}, nil
}

// rules returns the rules that validate definitions.
func (w world) rules() crd.Rules {
	return crd.Rules{Vocabulary: w.vocabulary, Types: w.types, Schemas: w.schemas}
}

// claims returns what decides about names.
func (w world) claims(at time.Time, others ...crd.Definition) crd.Claims {
	return crd.Claims{Others: others, Types: w.types, Vocabulary: w.vocabulary, Now: at}
}

func newWorld(t testing.TB, v vocabulary.Vocabulary) world {
	t.Helper()
	w, err := worlds[v.Name]()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// widgets returns a definition of widgets.example.com with one version. In schemas and
// extra, x- is replaced by the prefix of extensions.
func (w world) widgets(t testing.TB, schema string, extra ...string) map[string]any {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: %s/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: %s}
    %s`, w.vocabulary.Group("apiextensions."), schema, strings.Join(extra, "\n    "))
	return decode(t, strings.NewReplacer(" x-", " "+w.vocabulary.Extension, "{x-", "{"+w.vocabulary.Extension).Replace(text))
}

// add validates, establishes and compiles a definition.
func (w world) add(t testing.TB, definition map[string]any) world {
	t.Helper()
	crds := w.prepare(t, definition)
	if err := w.schemas.Validate(t.Context(), crds, definition, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.rules().Check(definition, nil); err != nil {
		t.Fatal(err)
	}
	d, err := crd.Compile(definition, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Established {
		t.Fatalf("not established: %v", definition["status"])
	}
	types := w.types.With(d.Surface)
	return world{w.vocabulary, types, w.schemas.With(types)}
}

// prepare prepares a definition for validation and returns its type.
func (w world) prepare(t testing.TB, definition map[string]any) *catalogue.Type {
	t.Helper()
	_, version, _ := strings.Cut(definition["apiVersion"].(string), "/")
	crds, ok := w.types.Lookup(w.vocabulary.Group("apiextensions."), version, "customresourcedefinitions")
	if !ok {
		t.Fatal("no type for definitions")
	}
	if warnings, err := w.schemas.Prepare(t.Context(), crds, definition, schema.Strict); err != nil {
		t.Fatal(err, warnings)
	}
	w.claims(now).Establish(definition, nil)
	return crds
}

func (w world) lookup(t testing.TB) *catalogue.Type {
	t.Helper()
	widget, ok := w.types.Lookup("example.com", "v1", "widgets")
	if !ok {
		t.Fatal("widgets are not served")
	}
	return widget
}

// write prepares and validates an object.
func (w world) write(t testing.TB, text string) (map[string]any, error) {
	t.Helper()
	object := decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}}")
	for field, value := range decode(t, text) {
		object[field] = value
	}
	widget := w.lookup(t)
	if _, err := w.schemas.Prepare(t.Context(), widget, object, schema.Ignore); err != nil {
		return object, err
	}
	return object, w.schemas.Validate(t.Context(), widget, object, nil)
}

func eachVocabulary(t *testing.T, run func(t *testing.T, w world)) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		t.Run(v.Name, func(t *testing.T) { run(t, newWorld(t, v)) })
	}
}

func TestCustomTypeTakesTheSamePath(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, w world) {
		w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 5, default: 1}}}}}`,
			`additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]`,
			`subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}`))
		widget := w.lookup(t)
		if widget.Singular != "widget" || widget.ListKind != "WidgetList" || !widget.Namespaced || widget.Stored != widget || !widget.Can("deletecollection") {
			t.Errorf("type: %+v", widget)
		}
		if len(widget.Columns) != 2 || widget.Columns[1].Cell != "custom .spec.size" {
			t.Errorf("columns: %+v", widget.Columns)
		}
		if scale := widget.Subresources["scale"]; scale == nil || scale.Scale.Replicas[1] != "size" || widget.Subresources["status"] == nil {
			t.Errorf("subresources: %+v", widget.Subresources)
		}
		if by, ok := w.types.ByKind("example.com", "v1", "Widget"); !ok || by != widget || w.types.Stored(widget.Key) != widget {
			t.Error("not found by kind or key")
		}
		if group, ok := w.types.Group("example.com"); !ok || group.Versions[0].Types[0] != widget {
			t.Error("not in its group")
		}
		object, err := w.write(t, "spec: {extra: 1}")
		if err != nil {
			t.Fatal(err)
		}
		if got := object["spec"]; fmt.Sprint(got) != "map[size:1]" {
			t.Errorf("pruned and defaulted: %v", got)
		}
	})
}

func TestSharesTheBuiltInTypes(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	more := w.add(t, w.widgets(t, `{type: object}`))
	before, _ := w.types.Lookup("apps", "v1", "deployments")
	after, _ := more.types.Lookup("apps", "v1", "deployments")
	if before != after {
		t.Error("built-in types are copied")
	}
	if _, ok := w.types.Lookup("example.com", "v1", "widgets"); ok {
		t.Error("the catalogue before has changed")
	}
	groups := more.types.Groups()
	if groups[0].Name != "" || groups[len(groups)-1].Name != "example.com" || len(groups) != len(w.types.Groups())+1 {
		t.Errorf("order of groups: %v", groups)
	}
}

func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ schema, object, want string }{
		"type":                {`{size: {type: integer}}`, `{size: x}`, `spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`},
		"whole float":         {`{size: {type: integer}}`, `{size: 5.0}`, ""},
		"maximum":             {`{size: {type: integer, maximum: 5}}`, `{size: 9}`, "spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5"},
		"exclusive minimum":   {`{size: {type: number, minimum: 1, exclusiveMinimum: true}}`, `{size: 1}`, "should be greater than 1"},
		"multiple":            {`{size: {type: integer, multipleOf: 4}}`, `{size: 6}`, "should be a multiple of 4"},
		"length":              {`{s: {type: string, maxLength: 2}}`, `{s: abc}`, "Too long"},
		"short":               {`{s: {type: string, minLength: 2}}`, `{s: ä}`, "should be at least 2 chars long"},
		"pattern":             {`{s: {type: string, pattern: "^a+$"}}`, `{s: b}`, "should match '^a+$'"},
		"long, no pattern":    {`{s: {type: string, maxLength: 2, pattern: "^a+$"}}`, `{s: bcd}`, "is invalid: spec.s: Too long"},
		"one of no type":      {`{s: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}}`, `{s: x}`, "Found 2 valid alternatives, spec.s: Invalid value: \"string\": spec.s in body must be of type object"},
		"format":              {`{s: {type: string, format: ipv4}}`, `{s: b}`, "must be of type ipv4"},
		"time":                {`{s: {type: string, format: date-time}}`, `{s: "2026-01-02T03:04:05Z"}`, ""},
		"format unknown":      {`{s: {type: string, format: colour}}`, `{s: b}`, ""},
		"enum":                {`{s: {type: string, enum: [a, b]}}`, `{s: c}`, `Unsupported value: "c": supported values: "a", "b"`},
		"enum of another":     {`{s: {type: string, enum: [a, b]}}`, `{s: 1}`, `Unsupported value: 1: supported values: "a", "b"`},
		"thrice":              {`{l: {type: array, x-list-type: set, items: {type: string}}}`, `{l: [a, a, a]}`, `is invalid: spec.l[1]: Duplicate value: "a"`},
		"embedded version":    {`{o: {type: object, x-embedded-resource: true, x-preserve-unknown-fields: true}}`, `{o: {kind: Pod, apiVersion: a/b/c}}`, "unexpected GroupVersion string: a/b/c"},
		"required":            {`{s: {type: object, required: [a], properties: {a: {type: string}}}}`, `{s: {}}`, "spec.s.a: Required value"},
		"required empty":      {`{s: {type: object, required: [a], properties: {a: {type: string}}}}`, `{s: {a: ""}}`, ""},
		"items":               {`{l: {type: array, maxItems: 1, items: {type: string}}}`, `{l: [a, b]}`, "Too many: 2: must have at most 1 item"},
		"item":                {`{l: {type: array, items: {type: string}}}`, `{l: [a, 1]}`, "spec.l[1]: Invalid value"},
		"properties":          {`{m: {type: object, minProperties: 1, additionalProperties: {type: string}}}`, `{m: {}}`, "should have at least 1 properties"},
		"values":              {`{m: {type: object, additionalProperties: {type: string}}}`, `{m: {a: 1}}`, "spec.m.a: Invalid value"},
		"set":                 {`{l: {type: array, x-list-type: set, items: {type: string}}}`, `{l: [a, a]}`, `spec.l[1]: Duplicate value: "a"`},
		"list map":            {`{l: {type: array, x-list-type: map, x-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}}`, `{l: [{k: a}, {k: a}]}`, `spec.l[1]: Duplicate value: {"k":"a"}`},
		"int or string":       {`{p: {x-int-or-string: true}}`, `{p: true}`, "must be of type integer,string"},
		"int or string, fine": {`{p: {x-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}`, `{p: 80}`, ""},
		"any of":              {`{s: {type: string, anyOf: [{minLength: 3}, {pattern: "^b"}]}}`, `{s: aa}`, `[<nil>: Invalid value: "": "spec.s" must validate at least one schema (anyOf), spec.s: Invalid value: "aa": spec.s in body should be at least 3 chars long]`},
		"one of":              {`{s: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}}`, `{s: {a: x, b: y}}`, "Found 2 valid alternatives"},
		"all of":              {`{s: {type: string, allOf: [{minLength: 3}]}}`, `{s: aa}`, `[<nil>: Invalid value: "": "spec.s" must validate all the schemas (allOf). None validated, spec.s: Invalid value: "aa": spec.s in body should be at least 3 chars long]`},
		"not":                 {`{s: {type: string, not: {enum: [bad]}}}`, `{s: bad}`, "must not validate the schema (not)"},
		"null dropped":        {`{s: {type: string}}`, `{s: null}`, ""},
		"null allowed":        {`{s: {type: string, nullable: true}}`, `{s: null}`, ""},
		"null in a list":      {`{l: {type: array, items: {type: string}}}`, `{l: [null]}`, `must be of type string: "null"`},
		"embedded":            {`{o: {type: object, x-embedded-resource: true, x-preserve-unknown-fields: true}}`, `{o: {kind: Pod}}`, "spec.o.apiVersion: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, vocabulary.K8s())
			w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: `+c.schema+`}}}`))
			_, err := w.write(t, "spec: "+c.object)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestPruningAndDefaults(t *testing.T) {
	for name, c := range map[string]struct{ schema, given, want string }{
		"unknown":             {`{type: object, properties: {a: {type: string}}}`, `{a: x, b: {c: 1}}`, `{a: x}`},
		"preserved":           {`{type: object, x-preserve-unknown-fields: true, properties: {a: {type: object, properties: {b: {type: string}}}}}`, `{a: {b: x, c: 1}, d: {e: 2}}`, `{a: {b: x}, d: {e: 2}}`},
		"no properties":       {`{type: object}`, `{a: 1}`, `{}`},
		"any value":           {`{type: object, additionalProperties: true}`, `{a: 1, b: {c: 1}}`, `{a: 1, b: {}}`},
		"list":                {`{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string, default: x}}}}}}`, `{l: [{b: 1}]}`, `{l: [{a: x}]}`},
		"null gives default":  {`{type: object, properties: {a: {type: string, default: x}}}`, `{a: null}`, `{a: x}`},
		"null stays":          {`{type: object, properties: {a: {type: string, nullable: true, default: x}}}`, `{a: null}`, `{a: null}`},
		"default in default":  {`{type: object, properties: {a: {type: object, default: {}, properties: {b: {type: integer, default: 3}}}}}`, `{}`, `{a: {b: 3}}`},
		"embedded metadata":   {`{type: object, properties: {o: {type: object, x-embedded-resource: true, properties: {spec: {type: object}}}}}`, `{o: {apiVersion: v1, kind: Pod, metadata: {name: a, bogus: 1}, other: 1}}`, `{o: {apiVersion: v1, kind: Pod, metadata: {name: a}}}`},
		"type-less preserved": {`{type: object, properties: {a: {x-preserve-unknown-fields: true}}}`, `{a: [1, {b: c}]}`, `{a: [1, {b: c}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, vocabulary.Platform())
			w = w.add(t, w.widgets(t, `{type: object, properties: {spec: `+c.schema+`}}`))
			object, err := w.write(t, "spec: "+c.given)
			if err != nil {
				t.Fatal(err)
			}
			if want := decode(t, c.want); fmt.Sprint(object["spec"]) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", object["spec"], want)
			}
		})
	}
}

// TestPruningOtherTypes: values of another type than the schema says lose their fields before they
// are validated, so that they can also be pruned where a version has another type.
func TestPruningOtherTypes(t *testing.T) {
	for name, c := range map[string]struct{ schema, given, want string }{
		"object for a list":   {`{type: array, items: {type: object, properties: {b: {type: string}}}}`, `{b: x}`, `{}`},
		"object for a text":   {`{type: string}`, `{b: x}`, `{}`},
		"list for an object":  {`{type: object, properties: {b: {type: string}}}`, `[1, {b: x, c: [{d: 1}]}, [{e: 1}]]`, `[1, {}, [{}]]`},
		"list for a map":      {`{type: object, additionalProperties: {type: object, x-preserve-unknown-fields: true}}`, `[{b: x}]`, `[{}]`},
		"list of any objects": {`{type: object, x-preserve-unknown-fields: true}`, `[{b: x}]`, `[{b: x}]`},
	} {
		w := newWorld(t, vocabulary.K8s())
		w = w.add(t, w.widgets(t, `{type: object, properties: {a: `+c.schema+`}}`))
		object := decode(t, "{apiVersion: example.com/v1, kind: Widget, a: "+c.given+"}")
		if _, err := w.schemas.Prepare(t.Context(), w.lookup(t), object, schema.Warn); err != nil {
			t.Fatal(err)
		}
		if want := decode(t, "a: "+c.want); fmt.Sprint(object["a"]) != fmt.Sprint(want["a"]) {
			t.Errorf("%s: got %v, want %v", name, object["a"], want["a"])
		}
	}
}

func TestRestrictedNames(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 3}}}}}`))
	if _, err := w.write(t, "metadata: {name: long, namespace: default}"); err == nil || !strings.Contains(err.Error(), "metadata.name") {
		t.Error(err)
	}
	if _, err := w.write(t, "metadata: {name: a, namespace: default, labels: {a: b}}"); err != nil {
		t.Error(err)
	}
}

func TestConverterKnowsCustomTypes(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, w world) {
		w = w.add(t, w.widgets(t, `{type: object, x-preserve-unknown-fields: true, properties: {spec: {type: object, x-preserve-unknown-fields: true, properties: {set: {type: array, x-list-type: set, items: {type: string}}}}}}`))
		converter := w.types.Converter()
		for object, want := range map[string]string{
			"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, finalizers: [b]}, spec: {set: [x], free: [1]}}":        `.spec.set[="x"]`,
			"{apiVersion: example.com/v1, kind: Widget, metadata: {labels: {a: b}}, spec: {free: {x: [1]}}}":                       `.spec.free.x`,
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}":                                    `.spec.containers[name="c"].name`,
			"{apiVersion: example.com/v1, kind: Widget, metadata: {ownerReferences: [{uid: u, kind: K, name: o, apiVersion: v}]}}": `.metadata.ownerReferences[uid="u"].name`,
		} {
			typed, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: decode(t, object)})
			if err != nil {
				t.Fatal(err)
			}
			set, err := typed.ToFieldSet()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(set.String(), want) {
				t.Errorf("%s: fields %s, want %s", object, set, want)
			}
		}
	})
}

func TestOldVersionOfDefinitions(t *testing.T) {
	w := newWorld(t, vocabulary.Platform())
	definition := decode(t, `
apiVersion: apiextensions.platform.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  version: v1
  preserveUnknownFields: false
  names: {plural: things, kind: Thing}
  validation: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
  additionalPrinterColumns: [{name: Size, type: integer, JSONPath: .spec.size}]`)
	w.prepare(t, definition)
	if err := w.rules().Check(definition, nil); err != nil {
		t.Fatal(err)
	}
	d, err := crd.Compile(definition, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
	if err != nil {
		t.Fatal(err)
	}
	if thing := d.Types[0]; !thing.Namespaced || thing.Columns[1].Cell != "custom .spec.size" || thing.Schema().Properties["spec"].Properties["size"].Type[0] != "integer" {
		t.Errorf("%+v", thing)
	}
}

func TestManyDefinitionsAreCheap(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	var surfaces []catalogue.Surface
	for i := range 100 {
		definition := w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}`)
		set(definition, fmt.Sprintf("g%d.example.com", i), "spec", "group")
		d, err := crd.Compile(definition, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
		if err != nil {
			t.Fatal(err)
		}
		surfaces = append(surfaces, d.Surface)
	}
	best := growth.Cost(5, func() { w.schemas.With(w.types.With(surfaces...)) })
	t.Log("100 definitions:", best)
	if best > 20*time.Millisecond {
		t.Errorf("joining 100 definitions took %v", best)
	}
}

// FuzzCompile passes arbitrary definitions to validation and compilation.
func FuzzCompile(f *testing.F) {
	w := newWorld(f, vocabulary.Platform())
	for _, schema := range []string{
		`{type: object, properties: {spec: {type: object, properties: {size: {type: integer, default: 1}}}}}`,
		`{type: object, x-preserve-unknown-fields: true, anyOf: [{properties: {a: {minLength: 1}}}], not: {required: [b]}}`,
		`{type: object, properties: {l: {type: array, x-list-type: map, x-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}}}`,
	} {
		raw, err := tree.Encode(w.widgets(f, schema))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		object, err := tree.Decode(raw)
		if err != nil || object == nil {
			t.Skip()
		}
		w.claims(now).Establish(object, nil)
		sound := w.rules().Check(object, nil) == nil
		d, err := crd.Compile(object, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
		if err != nil {
			if sound {
				t.Fatalf("a sound definition does not compile: %v", err)
			}
			return
		}
		types := w.types.With(d.Surface)
		schemas := w.schemas.With(types)
		for _, custom := range d.Types {
			object := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"a": []any{int64(1), nil, "x"}}}
			if _, err := schemas.Prepare(t.Context(), custom, object, schema.Ignore); err == nil {
				_ = schemas.Validate(t.Context(), custom, object, nil)
			}
		}
		if sound && len(d.Types) > 0 {
			kind := d.Types[0]
			if _, err := types.Converter().ObjectToTyped(&unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.APIVersion(), "kind": kind.Kind}}); err != nil {
				t.Fatalf("a sound definition has no typed values: %v", err)
			}
		}
	})
}
