package crd_test

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	openapi "k8s.io/kube-openapi/pkg/util/proto"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// apply is a server-side apply of a widget.
func (w world) apply(t *testing.T, current map[string]any, manager, spec string) (map[string]any, error) {
	t.Helper()
	body, err := tree.Encode(decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: "+spec+"}"))
	if err != nil {
		t.Fatal(err)
	}
	m := fieldmanager.New(fieldmanager.Options{Vocabulary: w.vocabulary, Types: w.types})
	object, _, err := m.Patch(t.Context(), fieldmanager.PatchRequest{Type: w.lookup(t), MediaType: fieldmanager.MediaTypeApply, Body: body, Current: current, Manager: manager})
	return object, err
}

func TestApplyOfUnmarkedLists(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, w world) {
		w = w.add(t, w.widgets(t, `{type: object, x-preserve-unknown-fields: true}`))
		first, err := w.apply(t, nil, "one", "{deep: {x: 1}, list: [{name: a}]}")
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.apply(t, first, "two", "{deep: {w: 2}}")
		if err != nil {
			t.Fatal(err)
		}
		if deep := second["spec"].(map[string]any)["deep"].(map[string]any); len(deep) != 2 {
			t.Errorf("maps are not merged: %v", deep)
		}
		if _, err := w.apply(t, second, "two", "{deep: {w: 2}, list: [{name: b}]}"); !services.IsReason(err, services.ReasonConflict) || !strings.Contains(err.Error(), ".spec.list") {
			t.Errorf("lists are merged: %v", err)
		}
	})
}

func TestApplyAfterAListBecameASet(t *testing.T) {
	schema := `{type: object, properties: {spec: {type: object, properties: {list: {type: array, x-list-type: KIND, items: {type: string}}}}}}`
	base := newWorld(t, vocabulary.Platform())
	atomic := base.add(t, base.widgets(t, strings.ReplaceAll(schema, "KIND", "atomic")))
	object, err := atomic.apply(t, nil, "one", "{list: [a, b]}")
	if err != nil {
		t.Fatal(err)
	}
	changed := base.add(t, base.widgets(t, strings.ReplaceAll(schema, "KIND", "set")))
	object, err = changed.apply(t, object, "two", "{list: [c]}")
	if err != nil {
		t.Fatal(err)
	}
	if list := object["spec"].(map[string]any)["list"].([]any); len(list) != 3 {
		t.Errorf("elements: %v", list)
	}
}

// TestPublished parses the published OpenAPI documents strictly.
func TestPublished(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, required: [spec], properties: {
		metadata: {type: object, properties: {name: {type: string, maxLength: 9}}},
		spec: {type: object, nullable: true, properties: {
			p: {x-int-or-string: true, anyOf: [{type: integer}, {type: string}]},
			e: {type: object, x-embedded-resource: true, x-preserve-unknown-fields: true},
			n: {type: string, not: {enum: [a]}}}}}}`, `subresources: {status: {}}`))
	documents := discovery.New(discovery.Options{Catalogue: w.types, Vocabulary: w.vocabulary, Version: discovery.Version(release.V121)})
	for path, accept := range map[string]string{
		"/openapi/v2":                     "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
		"/openapi/v3/apis/example.com/v1": "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
		"/apis/example.com/v1":            "application/json",
	} {
		request := httptest.NewRequest("GET", path, nil)
		request.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		if err := documents.Serve(answer, request); err != nil || answer.Code != 200 || !strings.Contains(answer.Body.String(), "Widget") {
			t.Errorf("%s: %d %v", path, answer.Code, err)
		}
		if path == "/openapi/v2" {
			readByKubectl(t, answer.Body.Bytes())
		}
	}
	answer := httptest.NewRecorder()
	if err := documents.Serve(answer, httptest.NewRequest("GET", "/openapi/v3/apis/example.com/v1", nil)); err != nil {
		t.Fatal(err)
	}
	schemas := decode(t, answer.Body.String())["components"].(map[string]any)["schemas"].(map[string]any)
	metadata := schemas["com.example.v1.Widget"].(map[string]any)["properties"].(map[string]any)["metadata"].(map[string]any)
	if metadata["properties"] != nil || metadata["allOf"] == nil {
		t.Errorf("metadata in version 3: %v", metadata)
	}
}

// TestPublishedAgain counts on documents that are not generated again for a definition that does
// not concern them: tools read all of them after each change.
func TestPublishedAgain(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	widgets := w.widgets(t, `{type: object}`)
	first := w.add(t, widgets)
	gadgets := w.widgets(t, `{type: object}`)
	set(gadgets, "gadgets.example.org", "metadata", "name")
	set(gadgets, "example.org", "spec", "group")
	set(gadgets, map[string]any{"plural": "gadgets", "kind": "Gadget"}, "spec", "names")
	both := first.add(t, gadgets)
	changed := w.add(t, w.widgets(t, `{type: object, properties: {color: {type: string}}}`))
	publish := func(w world, before *discovery.Documents) *discovery.Documents {
		return discovery.New(discovery.Options{Catalogue: w.types, Vocabulary: w.vocabulary, Version: discovery.Version(release.V121), Before: before})
	}
	read := func(d *discovery.Documents, path string) string {
		t.Helper()
		answer := httptest.NewRecorder()
		if err := d.Serve(answer, httptest.NewRequest("GET", path, nil)); err != nil {
			t.Fatal(err)
		}
		return answer.Body.String()
	}
	before := publish(first, nil)
	read(before, "/openapi/v3")
	for name, next := range map[string]world{"another definition": both, "a changed one": changed, "none": w} {
		t.Run(name, func(t *testing.T) {
			kept, fresh := publish(next, before), publish(next, nil)
			paths := []string{"/openapi/v3", "/openapi/v3/apis/apps/v1"}
			for _, group := range []string{"example.com", "example.org"} {
				if _, ok := next.types.Group(group); ok {
					paths = append(paths, "/openapi/v3/apis/"+group+"/v1")
				}
			}
			for _, path := range paths {
				if a, b := read(kept, path), read(fresh, path); a != b {
					t.Errorf("%s differs from that of new documents", path)
				}
			}
		})
	}
	allocated := func(d *discovery.Documents) uint64 {
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		read(d, "/openapi/v3")
		runtime.ReadMemStats(&end)
		return end.Mallocs - start.Mallocs
	}
	if kept, fresh := allocated(publish(both, before)), allocated(publish(both, nil)); kept > fresh/4 {
		t.Errorf("%d allocations with the documents before, %d without", kept, fresh)
	}
}

// readByKubectl reads a document as kubectl does, which refuses all of it for one schema that
// has properties beside a reference.
func readByKubectl(t *testing.T, document []byte) {
	t.Helper()
	parsed := &openapi_v2.Document{}
	if err := proto.Unmarshal(document, parsed); err != nil {
		t.Fatal(err)
	}
	models, err := openapi.NewOpenAPIData(parsed)
	if err != nil {
		t.Fatal(err)
	}
	widget, ok := models.LookupModel("com.example.v1.Widget").(*openapi.Kind)
	if !ok {
		t.Fatal("Widget is no object")
	}
	if metadata, ok := widget.Fields["metadata"].(openapi.Reference); !ok || !strings.HasSuffix(metadata.Reference(), ".ObjectMeta") {
		t.Errorf("metadata: %v", widget.Fields["metadata"])
	}
}

// TestPublishedPaths checks what documents say about custom types and nothing else: they have
// no Protobuf, strategic merge patches and paths of watches.
func TestPublishedPaths(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {
		p: {x-int-or-string: true, default: 1}, e: {type: object, x-embedded-resource: true, x-preserve-unknown-fields: true}}}}}`, `subresources: {status: {}}`))
	documents := discovery.New(discovery.Options{Catalogue: w.types, Vocabulary: w.vocabulary, Release: release.V136, Version: discovery.Version(release.V136)})
	read := func(path string) (map[string]any, string) {
		answer := httptest.NewRecorder()
		if err := documents.Serve(answer, httptest.NewRequest("GET", path, nil)); err != nil || answer.Code != 200 {
			t.Fatalf("%s: %d %v", path, answer.Code, err)
		}
		return decode(t, answer.Body.String()), answer.Body.String()
	}
	third, text := read("/openapi/v3/apis/example.com/v1")
	for _, other := range []string{"protobuf", "strategic", "stream=watch", "/watch/", "APIResourceList"} {
		if strings.Contains(text, other) {
			t.Errorf("the document has %s", other)
		}
	}
	patches, _, _ := unstructured.NestedMap(third, "paths", "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status", "patch", "requestBody", "content")
	if len(patches) != 3 {
		t.Errorf("patches: %v", patches)
	}
	fields, _, _ := unstructured.NestedMap(third, "components", "schemas", "com.example.v1.Widget", "properties", "spec", "properties")
	port, _ := fields["p"].(map[string]any)
	embedded, _ := fields["e"].(map[string]any)
	if alternatives, _ := port["anyOf"].([]any); len(alternatives) != 2 || port["default"] != int64(1) {
		t.Errorf("a number or string: %v", port)
	}
	if required, _ := embedded["required"].([]any); len(required) != 2 {
		t.Errorf("an object in another one: %v", embedded)
	}
	second, _ := read("/openapi/v2")
	fields, _, _ = unstructured.NestedMap(second, "definitions", "com.example.v1.Widget", "properties", "spec", "properties")
	if port, _ := fields["p"].(map[string]any); port == nil || port["default"] != nil || port["anyOf"] != nil {
		t.Errorf("version 2 of a number or string: %v", port)
	}
}

// TestOperationIDs: ids of operations, of which clients make names of functions, have no dots and hyphens.
func TestOperationIDs(t *testing.T) {
	for group, want := range map[string][2]string{
		"queue.x-k8s.io":     {"readQueueXK8sIoV1NamespacedMyWidget", "queueXK8sIo_v1"},
		"my-app.example.com": {"readMyAppExampleComV1NamespacedMyWidget", "myAppExampleCom_v1"},
	} {
		w := newWorld(t, vocabulary.K8s())
		widgets := w.widgets(t, `{type: object}`)
		set(widgets, "widgets."+group, "metadata", "name")
		set(widgets, group, "spec", "group")
		set(widgets, map[string]any{"plural": "widgets", "kind": "My-Widget"}, "spec", "names")
		documents := discovery.New(discovery.Options{Catalogue: w.add(t, widgets).types, Vocabulary: w.vocabulary, Version: discovery.Version(release.V121)})
		answer := httptest.NewRecorder()
		if err := documents.Serve(answer, httptest.NewRequest("GET", "/openapi/v3/apis/"+group+"/v1", nil)); err != nil {
			t.Fatal(err)
		}
		get, _, _ := unstructured.NestedMap(decode(t, answer.Body.String()), "paths", "/apis/"+group+"/v1/namespaces/{namespace}/widgets/{name}", "get")
		if tags, _ := get["tags"].([]any); get["operationId"] != want[0] || len(tags) != 1 || tags[0] != want[1] {
			t.Errorf("%s: %v %v, want %v", group, get["operationId"], tags, want)
		}
	}
}

func TestScaleStandsWhereTheDefinitionSays(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, x-preserve-unknown-fields: true}`,
		`subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.have, labelSelectorPath: .status.pick}}`))
	scale := typesystem.SubjectOf(w.lookup(t).Subresources["scale"])
	object := decode(t, "{kind: Widget, metadata: {name: a}, spec: {size: 2}, status: {have: 1, pick: app=a}}")
	shown, err := scale.Show(object)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown["spec"].(map[string]any)["replicas"]; got != int64(2) {
		t.Errorf("replicas: %v", got)
	}
	if status := shown["status"].(map[string]any); status["replicas"] != int64(1) || status["selector"] != "app=a" {
		t.Errorf("status: %v", status)
	}
	changed, err := scale.Put(object, decode(t, "{metadata: {name: a}, spec: {replicas: 5}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := changed["spec"].(map[string]any)["size"]; got != int64(5) {
		t.Errorf("size: %v", got)
	}
}

// TestFieldsThatAreNotDescribed checks the published schemas with which clients validate
// objects: a schema that allows unknown fields must not be published as a closed one.
func TestFieldsThatAreNotDescribed(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	gadgets := w.widgets(t, `{type: object, x-preserve-unknown-fields: true}`)
	set(gadgets, "gadgets.example.com", "metadata", "name")
	set(gadgets, map[string]any{"plural": "gadgets", "kind": "Gadget"}, "spec", "names")
	w = w.add(t, gadgets).add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, x-preserve-unknown-fields: true, properties: {a: {type: string}}}}}`))
	documents := discovery.New(discovery.Options{Catalogue: w.types, Vocabulary: w.vocabulary, Version: discovery.Version(release.V121)})
	answer := httptest.NewRecorder()
	if err := documents.Serve(answer, httptest.NewRequest("GET", "/openapi/v2", nil)); err != nil {
		t.Fatal(err)
	}
	published := func(kind string) map[string]any {
		document := decode(t, answer.Body.String())
		return document["definitions"].(map[string]any)["com.example.v1."+kind].(map[string]any)
	}
	if open := published("Gadget"); open["properties"] != nil || open["type"] != "object" {
		t.Errorf("an open object: %v", open)
	}
	properties := published("Widget")["properties"].(map[string]any)
	if spec := properties["spec"].(map[string]any); spec["properties"] != nil || spec["type"] != nil || spec["x-kubernetes-preserve-unknown-fields"] != true {
		t.Errorf("an open field: %v", spec)
	}
	if properties["metadata"] == nil {
		t.Errorf("a closed object: %v", properties)
	}
}
