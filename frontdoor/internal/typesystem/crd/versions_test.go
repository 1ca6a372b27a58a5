package crd_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

// engineOf returns an engine whose types are those of a definition, stored at a
// revision, and the type of a version.
func (w world) engineOf(t *testing.T, definition map[string]any, in crd.Setting) (*typesystem.Engine, func(version string) *catalogue.Type, crd.Definition) {
	t.Helper()
	w.prepare(t, definition)
	in.Vocabulary, in.Types, in.Webhooks = w.vocabulary, w.types, webhook.NewClients(webhook.Settings{})
	d, err := crd.Compile(definition, in)
	if err != nil {
		t.Fatal(err)
	}
	e, err := typesystem.New(w.types, typesystem.Options{Vocabulary: w.vocabulary})
	if err != nil {
		t.Fatal(err)
	}
	e = e.With([]crd.Definition{d})
	return e, func(version string) *catalogue.Type {
		found, ok := e.Types.Lookup("example.com", version, "widgets")
		if !ok {
			t.Fatal("no type in version", version)
		}
		return found
	}, d
}

func storedWidget(version string, revision int64, spec string) services.Object {
	return services.Object{Revision: revision, JSON: []byte(`{"apiVersion":"example.com/` + version +
		`","kind":"Widget","metadata":{"resourceVersion":"1","name":"a"},"spec":` + spec + `}`)}
}

func TestObjectsOlderThanTheirSchema(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	schema := `{type: object, properties: {spec: {type: object, properties: {new: {type: string, default: late}}}}}`
	e, of, before := w.engineOf(t, w.widgets(t, schema), crd.Setting{Revision: 10})
	old := storedWidget("v1", 9, `{"gone":1}`)
	if got, err := e.View(context.Background(), old, of("v1")); err != nil || !strings.Contains(string(got.JSON), `"spec":{"new":"late"}`) {
		t.Errorf("an older object: %s %v", got.JSON, err)
	}
	fresh := storedWidget("v1", 11, `{"kept":"as stored"}`)
	if got, err := e.View(context.Background(), fresh, of("v1")); err != nil || string(got.JSON) != string(fresh.JSON) {
		t.Errorf("a newer object: %s %v", got.JSON, err)
	}
	page, err := e.Views(context.Background(), []services.Object{fresh, old}, of("v1"))
	if err != nil || string(page[0].JSON) != string(fresh.JSON) || !strings.Contains(string(page[1].JSON), "late") || strings.Contains(string(old.JSON), "late") {
		t.Errorf("a page: %v %v", page, err)
	}
	_, of, _ = w.engineOf(t, w.widgets(t, schema), crd.Setting{Revision: 20, Before: &before})
	if since := of("v1").Since; since != 10 {
		t.Errorf("the same schema since %d", since)
	}
	_, of, _ = w.engineOf(t, w.widgets(t, `{type: object}`), crd.Setting{Revision: 30, Before: &before})
	if since := of("v1").Since; since != 30 {
		t.Errorf("another schema since %d", since)
	}
}

// sized returns a definition with two versions, the second with another field.
func (w world) sized(t *testing.T) map[string]any {
	definition := w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}`)
	versions := definition["spec"].(map[string]any)["versions"].([]any)
	second := map[string]any{"name": "v2", "served": true, "storage": false, "schema": map[string]any{"openAPIV3Schema": yamlOf(
		`{type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string, default: x}}}}}`)}}
	set(definition, append(versions, second), "spec", "versions")
	return definition
}

func TestVersionsDropWhatTheyDoNotHave(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	e, of, _ := w.engineOf(t, w.sized(t), crd.Setting{})
	object := map[string]any{"apiVersion": "example.com/v2", "kind": "Widget", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"a": "1", "b": "2"}}
	content, err := e.Content(context.Background(), object, nil, of("v2"))
	if err != nil || !strings.Contains(string(content.JSON), `"spec":{"a":"1"}`) {
		t.Errorf("stored: %s %v", content.JSON, err)
	}
	if object["spec"].(map[string]any)["b"] != "2" {
		t.Error("the object given was changed")
	}
	shown, err := e.View(context.Background(), storedWidget("v1", 5, `{"a":"1"}`), of("v2"))
	if err != nil || !strings.Contains(string(shown.JSON), `"apiVersion":"example.com/v2"`) || !strings.Contains(string(shown.JSON), `"spec":{"a":"1"}`) {
		t.Errorf("shown: %s %v", shown.JSON, err)
	}
}

// renaming is a conversion webhook in this process.
type renaming struct{ calls int }

func (r *renaming) Convert(_ context.Context, objects []map[string]any, apiVersion string) ([]map[string]any, error) {
	r.calls++
	converted := make([]map[string]any, len(objects))
	for i, o := range objects {
		next := maps.Clone(o)
		next["apiVersion"], next["spec"] = apiVersion, map[string]any{"b": "converted", "unknown": true}
		converted[i] = next
	}
	return converted, nil
}

func TestPagesAreConvertedAtOnce(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	definition := w.sized(t)
	converts(map[string]any{"url": "https://nowhere.example.com"}, "v1")(definition)
	e, of, _ := w.engineOf(t, definition, crd.Setting{})
	if of("v1").Webhook == nil {
		t.Fatal("no webhook")
	}
	hook := &renaming{}
	second := of("v2")
	second.Webhook = hook
	page, err := e.Views(context.Background(), []services.Object{storedWidget("v1", 5, `{"a":"1"}`), storedWidget("v2", 6, `{"b":"own"}`), storedWidget("v1", 7, `{"a":"3"}`)}, second)
	if err != nil || hook.calls != 1 || len(page) != 3 {
		t.Fatal(page, hook.calls, err)
	}
	for i, want := range []string{"converted", "own", "converted"} {
		if !strings.Contains(string(page[i].JSON), `"spec":{"b":"`+want+`"}`) {
			t.Errorf("object %d: %s", i, page[i].JSON)
		}
	}
}
