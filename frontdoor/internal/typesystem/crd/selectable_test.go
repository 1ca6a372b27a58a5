package crd_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

const selectableSchema = `{type: object, properties: {
  metadata: {type: object, properties: {name: {type: string}}},
  spec: {type: object, properties: {color: {type: string, enum: [red, blue]}, size: {type: integer}, lit: {type: boolean}, any: {x-int-or-string: true},
    share: {type: number}, tags: {type: object, additionalProperties: {type: string}}, list: {type: array, items: {type: string}}}}}}`

// selecting is the definition of widgets with selectable fields.
func (w world) selecting(t *testing.T, schema string, paths ...string) map[string]any {
	items := make([]string, len(paths))
	for i, path := range paths {
		items[i] = "{jsonPath: \"" + path + "\"}"
	}
	return w.widgets(t, schema, "selectableFields: ["+strings.Join(items, ", ")+"]")
}

func TestCheckSelectableFields(t *testing.T) {
	w := later(t, vocabulary.K8s())
	const first = "spec.selectableFields[0].jsonPath: "
	nine := []string{".spec.color", ".spec.size", ".spec.lit"}
	for _, key := range strings.Split("abcdef", "") {
		nine = append(nine, ".spec.tags."+key)
	}
	for _, x := range []struct {
		paths []string
		want  string // empty for none
	}{
		{[]string{".spec.color", ".spec.size", ".spec.lit", ".spec.tags.a"}, ""},
		{nine[:8], ""},
		{nine, "spec.selectableFields: Too many: 9: must have at most 8 items"},
		{[]string{""}, first + "Required value"},
		{[]string{"spec.color"}, first + `Invalid value: "spec.color": is an invalid path: expected [ or . but got: spec`},
		{[]string{"."}, first + `Invalid value: ".": is an invalid path: unexpected end of JSON path`},
		{[]string{".spec.list[0]"}, first + `Invalid value: ".spec.list[0]": is an invalid path: array notation is not allowed`},
		{[]string{".spec.none"}, first + `Invalid value: ".spec.none": is an invalid path: does not refer to a valid field`},
		{[]string{".spec.color.deep"}, "does not refer to a valid field"},
		{[]string{".spec..color"}, "does not refer to a valid field"},
		{[]string{".spec.tags.."}, "does not refer to a valid field"},
		{[]string{".metadata.name"}, first + `Invalid value: ".metadata.name": must not point to fields in metadata`},
		{[]string{".metadata.labels"}, "does not refer to a valid field"},
		{[]string{".spec"}, first + `Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.`},
		{[]string{".spec.list"}, "must point to a field of type"}, {[]string{".spec.any"}, "must point to a field of type"}, {[]string{".spec.share"}, "must point to a field of type"},
		{[]string{".spec.color", ".spec.color"}, `spec.selectableFields[1].jsonPath: Duplicate value: ".spec.color"`},
	} {
		definition := w.selecting(t, selectableSchema, x.paths...)
		w.prepare(t, definition)
		err := w.rules().Check(definition, nil)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%v: %v, want %s", x.paths, err, x.want)
		}
	}
	two := w.selecting(t, selectableSchema, ".spec.color")
	secondSchema(`{type: object}`)(two)
	two["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.color"}, map[string]any{"jsonPath": ".spec.size"}}
	w.prepare(t, two)
	if err := w.rules().Check(two, nil); err == nil || !strings.Contains(err.Error(), `spec.versions[1].selectableFields[1].jsonPath: Invalid value: ".spec.size": is an invalid path`) {
		t.Errorf("of a version: %v", err)
	}
	old := newWorld(t, vocabulary.K8s())
	definition := old.selecting(t, selectableSchema, "nonsense")
	old.claims(now).Establish(definition, nil) // the release refuses or drops the field: this one is stored
	d, err := crd.Compile(definition, crd.Setting{Types: old.types, Vocabulary: old.vocabulary})
	if err != nil || d.Stored.Selectable != nil || old.rules().Check(definition, nil) != nil || len(d.Definitions.Get(d.Stored.Definition).Extensions) != 1 {
		t.Error("the release 1.21 has selectable fields")
	}
}

func TestValuesOfSelectableFields(t *testing.T) {
	w := later(t, vocabulary.K8s())
	e, of, before := w.engineOf(t, w.selecting(t, selectableSchema, ".spec.color", ".spec.size", ".spec.lit"), crd.Setting{Revision: 10})
	if list, _ := before.Definitions.Get(of("v1").Definition).Extensions["x-kubernetes-selectable-fields"].([]any); len(list) != 3 || list[0].(map[string]any)["fieldPath"] != "spec.color" {
		t.Errorf("published: %v", list)
	}
	object := func(spec string) map[string]any {
		return decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: "+spec+"}")
	}
	values := func(o services.Object, version string) map[string]string {
		t.Helper()
		all, err := e.FieldsOf(t.Context(), []services.Object{o}, of(version))
		if err != nil {
			t.Fatal(err)
		}
		found := maps.Clone(all[0])
		maps.DeleteFunc(found, func(name, _ string) bool { return strings.HasPrefix(name, "(") })
		return found
	}
	want := map[string]string{"spec.color": "red", "spec.size": "7", "spec.lit": ""}
	content, err := e.Content(t.Context(), object("{color: red, size: 7}"), nil, of("v1"))
	if err != nil || content.Fields["spec.size"] != "7" {
		t.Fatal(content.Fields, err)
	}
	stored := storedWidget("v1", 11, `{"color":"red","size":7}`)
	for what, fields := range map[string]map[string]string{"recorded": content.Fields, "of before the definition": nil, "of another definition": {"spec.color": "blue"}} {
		stored.Fields = fields
		if got := values(stored, "v1"); !maps.Equal(got, want) {
			t.Errorf("%s: %v", what, got)
		}
	}
	stored.Fields, stored.Revision = map[string]string{"spec.color": "blue", "spec.size": "7", "spec.lit": ""}, 9
	if got := values(stored, "v1"); !maps.Equal(got, want) {
		t.Errorf("of an older schema: %v", got)
	}
	empty, err := e.Content(t.Context(), object(`{color: ""}`), nil, of("v1"))
	absent, err2 := e.Content(t.Context(), object(`{}`), nil, of("v1"))
	if err != nil || err2 != nil || maps.Equal(empty.Fields, absent.Fields) {
		t.Errorf("an empty and an absent value are recorded alike: %v", empty.Fields)
	}
	long, err := e.Content(t.Context(), object(`{color: `+strings.Repeat("x", 300)+`}`), nil, of("v1"))
	if err != nil || len(long.Fields) != 1 || long.Fields["(content)"] == "" {
		t.Errorf("a long value is recorded: %v, %v", long.Fields, err)
	}
}

// TestSelectableFieldsOfVersions has fields of a version that is not stored, and that a
// webhook converts.
func TestSelectableFieldsOfVersions(t *testing.T) {
	w := later(t, vocabulary.K8s())
	definition := w.sized(t)
	definition["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.b"}}
	if _, of, _ := w.engineOf(t, definition, crd.Setting{}); of("v1").Selectable != nil || len(of("v2").Selectable) != 1 {
		t.Fatal("not of one version")
	}
	converts(map[string]any{"url": "https://nowhere.example.com"}, "v1")(definition)
	e, of, _ := w.engineOf(t, definition, crd.Setting{})
	second := of("v2")
	second.Webhook = &renaming{}
	objects := []services.Object{storedWidget("v1", 5, `{"a":"1"}`), storedWidget("v2", 6, `{"b":"own"}`)}
	objects[0].Fields = map[string]string{"spec.b": "wrong"}
	values, err := e.FieldsOf(t.Context(), objects, second)
	if err != nil || values[0]["spec.b"] != "converted" || values[1]["spec.b"] != "own" {
		t.Errorf("%v, %v", values, err)
	}
	content, err := e.Content(t.Context(), map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"a": "1"}}, nil, of("v1"))
	if err != nil || len(content.Fields) != 1 || content.Fields["(content)"] == "" {
		t.Errorf("recorded: %v, %v", content.Fields, err)
	}
}
