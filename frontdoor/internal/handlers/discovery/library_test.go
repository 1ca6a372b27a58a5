package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// definitions are custom types whose schemas count how often they are made, which a document does.
type definitions struct {
	builtIn *catalogue.Catalogue
	made    map[string]int // by group
	mu      sync.Mutex
}

func newDefinitions(t *testing.T) *definitions {
	t.Helper()
	builtIn, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	return &definitions{builtIn: builtIn, made: map[string]int{}}
}

// surface returns a type of a group. Its schema has a description.
func (d *definitions) surface(group, description string) catalogue.Surface {
	thing := &catalogue.Type{Group: group, Version: "v1", Resource: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList", Namespaced: true, Custom: true,
		Verbs: []string{"get", "list"}, Key: resource.GroupResource{Group: group, Resource: "things", Custom: true}}
	thing.Stored = thing
	copy(thing.Origin[:], group+description)
	made := catalogue.Lazy(group, "v1", "Thing", func() *spec.Schema {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.made[group]++
		s := &spec.Schema{}
		s.Type, s.Description = spec.StringOrArray{"object"}, description
		return s
	})
	thing.Describe(group+".v1.Thing", made)
	list := catalogue.Lazy(group, "v1", "ThingList", func() *spec.Schema { return &spec.Schema{} })
	return catalogue.Surface{Types: []*catalogue.Type{thing}, Definitions: catalogue.Definitions{thing.Definition: made, group + ".v1.ThingList": list}}
}

// publish returns the documents that replace others.
func (d *definitions) publish(before *Documents, surfaces ...catalogue.Surface) *Documents {
	return New(Options{Catalogue: d.builtIn.With(surfaces...), Vocabulary: vocabulary.K8s(), Release: release.V136, Version: Version(release.V136), Before: before})
}

// take returns how often schemas were made since the last call, by group.
func (d *definitions) take() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := fmt.Sprint(d.made)
	d.made = map[string]int{}
	return text
}

func ask(t *testing.T, d *Documents, path, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	r.Header.Set("Accept", accept)
	if err := d.Serve(w, r); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d, %v", path, w.Code, err)
	}
	return w
}

// fragmentsOf returns how many fragments of custom types are kept.
func fragmentsOf(d *Documents) int {
	d.library.second.mu.Lock()
	defer d.library.second.mu.Unlock()
	return len(d.library.second.custom)
}

// TestBuilds counts what each request makes: the index makes no document about custom types, a document is made
// once in each form, and after a change of one definition what describes it alone.
func TestBuilds(t *testing.T) {
	d := newDefinitions(t)
	a, b := d.surface("a.example.com", "first"), d.surface("b.example.com", "first")
	documents := d.publish(nil, a, b)
	made := func(path, accept, want string) *httptest.ResponseRecorder {
		t.Helper()
		w := ask(t, documents, path, accept)
		if got := d.take(); got != want {
			t.Errorf("%s made %s, want %s", path, got, want)
		}
		return w
	}
	const none = "map[]"
	index := made("/openapi/v3", "", none).Body.String()
	made("/openapi/v3/apis/a.example.com/v1", "", "map[a.example.com:1]")
	made("/openapi/v3/apis/a.example.com/v1", "", none)
	made("/openapi/v3/apis/a.example.com/v1", protobufV3, none)
	for _, form := range []string{"", protobufV2} { // each is made alone
		made("/openapi/v2", form, "map[a.example.com:1 b.example.com:1]")
		made("/openapi/v2", form, none)
	}

	documents = d.publish(documents, a, d.surface("b.example.com", "second"))
	if made("/openapi/v3", "", none).Body.String() == index {
		t.Error("the index is the same after a change")
	}
	made("/openapi/v3/apis/a.example.com/v1", "", none)
	for !strings.Contains(ask(t, documents, "/openapi/v2", protobufV2First).Body.String(), "second") { // the earlier one, first
	}
	if got := d.take(); got != "map[b.example.com:1]" {
		t.Errorf("a change made %s", got)
	}
	if n := fragmentsOf(documents); n != 2 {
		t.Errorf("%d fragments are kept", n)
	}
	if n := len(documents.library.second.templates); n != 1 {
		t.Errorf("the paths of two types that differ in names are made %d times", n)
	}
}

// TestChangesAreForgotten: however often a definition has changed, nothing of former generations is kept.
func TestChangesAreForgotten(t *testing.T) {
	d := newDefinitions(t)
	a := d.surface("a.example.com", "first")
	var now *Documents
	var before []weak.Pointer[Documents]
	var catalogues []weak.Pointer[catalogue.Catalogue]
	for i := range 5 {
		text := fmt.Sprint("change ", i)
		now = d.publish(now, a, d.surface("b.example.com", text))
		before, catalogues = append(before, weak.Make(now)), append(catalogues, weak.Make(now.openAPI.catalogue))
		ask(t, now, "/openapi/v3", "")
		for _, group := range []string{"a.example.com", "b.example.com"} {
			ask(t, now, "/openapi/v3/apis/"+group+"/v1", protobufV3)
		}
		for !strings.Contains(ask(t, now, "/openapi/v2", protobufV2).Body.String(), text) {
		}
	}
	runtime.GC()
	for i := range before[:4] {
		if before[i].Value() != nil || catalogues[i].Value() != nil {
			t.Errorf("generation %d is kept: documents %v, types %v", i, before[i].Value() != nil, catalogues[i].Value() != nil)
		}
	}
	if n := fragmentsOf(now); n != 2 {
		t.Errorf("%d fragments are kept", n)
	}
}

// TestExtensionsBesideDefinitions: a definition of an extension with the name of one of a custom type gets another name, and
// all is as before once the extension is gone.
func TestExtensionsBesideDefinitions(t *testing.T) {
	d := newDefinitions(t)
	a := d.surface("a.example.com", "of the definition")
	parsed, err := ParseOpenAPI("x.example.com", "v1", []byte(`{"swagger":"2.0","info":{"title":"x","version":"1"},
		"paths":{"/apis/x.example.com/v1/things":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/a.example.com.v1.Thing"}}}}}},
		"definitions":{"a.example.com.v1.Thing":{"description":"of the extension","type":"object"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	one := d.publish(nil, a)
	alone := ask(t, one, "/openapi/v2", "").Body.String()
	two := New(Options{Catalogue: one.openAPI.catalogue, Vocabulary: vocabulary.K8s(), Release: release.V136, Version: Version(release.V136), Before: one,
		Extensions: []Extension{{Group: "x.example.com", Version: "v1", OpenAPI: parsed}}})
	merged := ask(t, two, "/openapi/v2", "").Body.String()
	for merged == alone {
		merged = ask(t, two, "/openapi/v2", "").Body.String()
	}
	var document struct {
		Paths       map[string]any
		Definitions map[string]struct{ Description string }
	}
	if err := json.Unmarshal([]byte(merged), &document); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a.example.com.v1.Thing": "of the definition", "a.example.com.v1.Thing_v2": "of the extension"} {
		if got := document.Definitions[name].Description; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if document.Paths["/apis/x.example.com/v1/things"] == nil || document.Paths["/apis/a.example.com/v1/namespaces/{namespace}/things"] == nil {
		t.Error("paths are missing")
	}
	three := d.publish(two, a)
	for again := merged; again != alone; {
		if again = ask(t, three, "/openapi/v2", "").Body.String(); again != merged && again != alone {
			t.Fatal("the document differs from that before the extension")
		}
	}
}

// TestHashes: the hash of a document about custom types is the same in another front door, changes with what a definition
// says, and is that of the path under which the document never expires.
func TestHashes(t *testing.T) {
	hash := func(d *Documents) string {
		t.Helper()
		var index struct {
			Paths map[string]struct{ ServerRelativeURL string }
		}
		if err := json.Unmarshal(ask(t, d, "/openapi/v3", "").Body.Bytes(), &index); err != nil {
			t.Fatal(err)
		}
		return index.Paths["apis/a.example.com/v1"].ServerRelativeURL
	}
	one, other := newDefinitions(t), newDefinitions(t)
	d := one.publish(nil, one.surface("a.example.com", "first"))
	first := hash(d)
	if second := hash(other.publish(nil, other.surface("b.example.com", "a"), other.surface("a.example.com", "first"))); second != first {
		t.Errorf("another front door has %s, not %s", second, first)
	}
	if w := ask(t, d, first, ""); !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.Contains(first, strings.Trim(w.Header().Get("Etag"), `"`)) {
		t.Errorf("%s has the headers %v", first, w.Header())
	}
	d = one.publish(d, one.surface("a.example.com", "second"))
	if second := hash(d); second == first {
		t.Errorf("a changed definition has the hash of before, %s", second)
	}
	if w := ask(t, d, first, ""); w.Header().Get("Cache-Control") != "" || !strings.Contains(w.Body.String(), "second") {
		t.Errorf("the former path has the headers %v", w.Header())
	}
}

// TestShelf: the shelf keeps what was requested last, within its bound.
func TestShelf(t *testing.T) {
	s, made := newShelf(), 0
	get := func(key string) {
		t.Helper()
		b, err := s.get(key, func() (*body, error) {
			made++
			return &body{zipped: make([]byte, 10*shelfEntry), etag: key}, nil
		})
		if err != nil || b.etag != key {
			t.Fatalf("%v, %v", b, err)
		}
	}
	s.Bound(25 * shelfEntry)
	for _, key := range []string{"a", "b", "a", "c", "a", "b"} { // c pushes b out
		get(key)
	}
	if made != 4 || s.Bytes() != 22*shelfEntry {
		t.Errorf("%d were made, %d bytes are kept", made, s.Bytes())
	}
	if s.Bound(0); s.Bytes() != 0 || s.kept.Len() != 0 {
		t.Errorf("%d bytes are kept beyond the bound", s.Bytes())
	}
	failure := errors.New("no document")
	s.Bound(1 << 20)
	for range 2 {
		if _, err := s.get("d", func() (*body, error) { made++; return nil, failure }); !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
	}
	if made != 6 || s.kept.Len() != 0 {
		t.Errorf("a failure is kept: %d were made", made)
	}
}

// TestNewest: requests share one goroutine that makes a document. While types change they get the latest complete one
// after their patience; once they are quiet, the current one.
func TestNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n newest
		made := 0
		takes := func(d time.Duration, etag string) func() (*body, error) {
			return func() (*body, error) {
				<-time.After(d)
				made++
				return &body{etag: etag}, nil
			}
		}
		get := func(g generation, of func() (*body, error)) string {
			b, err := n.get(t.Context(), g, of)
			if err != nil {
				t.Error(err)
				return ""
			}
			return b.etag
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if got := get(generation{1, time.Now()}, takes(10*time.Second, "one")); got != "one" {
					t.Errorf("the first is %s", got)
				}
			})
		}
		all.Wait()
		second := generation{2, time.Now()}
		began := time.Now()
		if got := get(second, takes(10*time.Second, "two")); got != "one" || time.Since(began) != patience {
			t.Errorf("while it is made: %s after %v", got, time.Since(began))
		}
		<-time.After(quiet)
		if got := get(second, takes(time.Hour, "another")); got != "two" || made != 2 {
			t.Errorf("once types are quiet: %s, %d were made", got, made)
		}
		third := generation{3, time.Now()}
		if got := get(third, takes(patience/2, "three")); got != "three" {
			t.Errorf("one that is complete in time: %s", got)
		}
		if _, err := n.get(t.Context(), generation{4, time.Now().Add(-quiet)}, func() (*body, error) { panic("a document") }); err == nil {
			t.Error("a panic is no error")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := n.get(ctx, generation{4, time.Now().Add(-quiet)}, takes(time.Hour, "four")); !errors.Is(err, context.Canceled) {
			t.Errorf("without its client: %v", err)
		}
		<-time.After(2 * time.Hour)
		if got := get(generation{4, time.Now()}, takes(0, "five")); got != "four" {
			t.Errorf("what was made for a client that left: %s", got)
		}
	})
}
