package writes

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/growth"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// withWidgets adds a custom type with this schema.
func (c *client) withWidgets(schema string) {
	c.t.Helper()
	text, err := yaml.YAMLToJSON(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: %s}}]`, schema))
	if err != nil {
		c.t.Fatal(err)
	}
	definition, err := tree.Decode(text)
	if err != nil {
		c.t.Fatal(err)
	}
	crd.Claims{Types: c.engine.Types, Vocabulary: vocabulary.K8s(), Now: time.Now()}.Establish(definition, nil)
	d, err := crd.Compile(definition, crd.Setting{Vocabulary: vocabulary.K8s(), Types: c.engine.Types})
	if err != nil || !d.Established {
		c.t.Fatal(err, definition["status"])
	}
	c.engine = c.engine.With([]crd.Definition{d})
}

// held returns the peak of the additional memory that a function uses, and its processor time.
func held(f func()) (bytes uint64, took time.Duration) {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before := stats.HeapAlloc
	var peak atomic.Uint64
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			peak.Store(max(peak.Load(), stats.HeapAlloc))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	took = growth.Cost(1, f)
	close(done)
	<-watched
	return max(peak.Load(), before) - before, took
}

const widgets = "/apis/example.com/v1/namespaces/shop/widgets"

// TestDeepObjectsAreCheap sends deeply nested objects: those within the limit are
// accepted and others rejected, and the cost of both is proportional to their size.
func TestDeepObjectsAreCheap(t *testing.T) {
	c := newClient(t, &oneObject{}, "10.0.0.0/24")
	c.withWidgets(`{type: object, x-kubernetes-preserve-unknown-fields: true}`)
	stored := func(spec string) services.Object {
		return services.Object{UID: "u", Revision: 1, JSON: []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop","resourceVersion":"1","uid":"u"},"spec":` + spec + `}`)}
	}
	for _, depth := range []int{100, tree.MaxDepth - 5, tree.MaxDepth + 5, 6000, 9000, 200_000} {
		for shape, value := range map[string]string{
			"maps":  strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat("}", depth),
			"lists": `{"a":` + strings.Repeat(`[`, depth-1) + strings.Repeat("]", depth-1) + "}",
		} {
			whole := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop"},"spec":` + value + `}`
			for name, x := range map[string]struct{ method, path, body string }{
				"create": {http.MethodPost, widgets, whole},
				"update": {http.MethodPut, widgets + "/w", strings.Replace(whole, `"name":"w"`, `"name":"w","resourceVersion":"1"`, 1)},
				"merge":  {http.MethodPatch, widgets + "/w", `{"spec":` + value + `}`},
				"json":   {"JSONPATCH", widgets + "/w", `[{"op":"replace","path":"/spec","value":` + value + `}]`},
				"apply":  {"APPLY", widgets + "/w?fieldManager=m&force=true", whole},
			} {
				var err error
				bytes, took := held(func() {
					c.handlers.Store.(*oneObject).object = stored(`{"a":{"a":1}}`)
					err = c.send(t, x.method, x.path, x.body)
				})
				var status *services.Status
				switch fits := depth < tree.MaxDepth; {
				case fits && err != nil:
					t.Errorf("%s %s %d: %v", name, shape, depth, err)
				case !fits && (!errors.As(err, &status) || status.Code != http.StatusBadRequest && status.Code != http.StatusUnprocessableEntity):
					t.Errorf("%s %s %d: got %v, want a refusal", name, shape, depth, err)
				}
				if bytes > 100<<20 || took > 2*time.Second {
					t.Errorf("%s %s %d: it took %d MiB and %v", name, shape, depth, bytes>>20, took)
				}
			}
		}
	}
}

// TestStoredDepthIsReadable: an accepted object can be read, changed and deleted although
// its managedFields are nested more deeply.
func TestStoredDepthIsReadable(t *testing.T) {
	store := &oneObject{}
	c := newClient(t, store, "10.0.0.0/24")
	c.withWidgets(`{type: object, x-kubernetes-preserve-unknown-fields: true}`)
	depth := tree.MaxDepth - 1 // below the object itself
	object := c.must(http.MethodPost, widgets, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop"},"spec":`+
		strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)+"}")
	raw, err := tree.Encode(object)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := object["metadata"].(map[string]any)["uid"].(string)
	store.object = services.Object{UID: uid, Revision: 2, JSON: raw}
	object["status"] = "changed"
	if raw, err = tree.Encode(object); err != nil {
		t.Fatal(err)
	}
	if err := c.send(t, http.MethodPut, widgets+"/w", string(raw)); err != nil {
		t.Errorf("sent back as it was read: %v", err)
	}
	if err := c.send(t, http.MethodPatch, widgets+"/w", `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("changed: %v", err)
	}
}

// TestDefaultsAreBounded creates an object of 60 KB that defaulting would grow to 4 GB.
func TestDefaultsAreBounded(t *testing.T) {
	c := newClient(t, &oneObject{}, "10.0.0.0/24")
	c.withWidgets(`{type: object, properties: {spec: {type: object, properties: {list: {type: array, items: {type: object, nullable: true, properties: {a: {type: string, default: "` +
		strings.Repeat("x", 200<<10) + `"}, b: {type: object, default: {}, properties: {c: {type: string, default: c}}}}}}}}}}`)
	widget := func(items string) string {
		return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop"},"spec":{"list":[` + items + `]}}`
	}
	if err := c.send(t, http.MethodPost, widgets, widget(repeated(10, func(int) string { return "{}" }))); err != nil {
		t.Errorf("10 items: %v", err)
	}
	var err error
	bytes, took := held(func() {
		err = c.send(t, http.MethodPost, widgets, widget(repeated(20_000, func(int) string { return "{}" })))
	})
	if !services.IsReason(err, services.ReasonRequestEntityTooLarge) {
		t.Errorf("20,000 items: got %v, want %s", err, services.ReasonRequestEntityTooLarge)
	}
	if bytes > 200<<20 || took > 5*time.Second {
		t.Errorf("20,000 items: it took %d MiB and %v", bytes>>20, took)
	}
	// Stored objects stay readable if such defaults are added to their definition later.
	c.engine.Schemas.Complete(c.widget(), map[string]any{"spec": map[string]any{"list": slices.Repeat([]any{map[string]any{}}, 20_000)}})
}

// widget returns the custom type.
func (c *client) widget() *catalogue.Type {
	widget, ok := c.engine.Types.Lookup("example.com", "v1", "widgets")
	if !ok {
		c.t.Fatal("widgets are not served")
	}
	return widget
}

// TestNestedSchemasAreCheckedOnce: an invalid value is validated once against each part of
// its schema, not twice at every level.
func TestNestedSchemasAreCheckedOnce(t *testing.T) {
	for _, combinator := range []string{"allOf", "anyOf", "oneOf"} {
		schema := `{type: object, required: [missing]}`
		for range 40 {
			schema = `{` + combinator + `: [` + schema + `]}`
		}
		c := newClient(t, &oneObject{}, "10.0.0.0/24")
		c.withWidgets(`{type: object, x-kubernetes-preserve-unknown-fields: true, ` + schema[1:])
		var err error
		took := growth.Cost(1, func() {
			err = c.send(t, http.MethodPost, widgets, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop"}}`)
		})
		if !services.IsReason(err, services.ReasonInvalid) || took > 5*time.Second {
			t.Errorf("%s: got %v after %v", combinator, err, took)
		}
	}
}

// TestManyErrorsAreTruncated sends an object with a hundred thousand errors.
func TestManyErrorsAreTruncated(t *testing.T) {
	c := newClient(t, &oneObject{}, "10.0.0.0/24")
	faults := func(n int) *services.Status {
		err := c.send(t, http.MethodPost, "/api/v1/namespaces/shop/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","env":[`+
			repeated(n, func(i int) string { return fmt.Sprintf(`{"name":"=%d","value":"x"}`, i) })+`]}]}}`)
		var status *services.Status
		if !errors.As(err, &status) || status.Code != http.StatusUnprocessableEntity {
			t.Fatalf("%d faults: got %v", n, err)
		}
		return status
	}
	if got := faults(50); len(got.Details.Causes) != 50 || strings.Contains(got.Message, "more") {
		t.Errorf("50 faults: %d are reported", len(got.Details.Causes))
	}
	got := faults(80_000)
	if len(got.Details.Causes) > 100 || len(got.Message) > 1<<20 || !strings.Contains(got.Message, "more") {
		t.Errorf("80,000 faults: %d are reported in %d bytes", len(got.Details.Causes), len(got.Message))
	}
}
