package extensions

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/release"
)

const resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"ext.example.com/v1","resources":[
	{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get","list"],"shortNames":["wd"]},
	{"name":"widgets/status","namespaced":true,"kind":"Widget","verbs":["get"]}]}`

const openAPI = `{"swagger":"2.0","info":{"title":"ext","version":"1"},"paths":{
	"/apis/ext.example.com/v1/widgets":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/io.k8s.api.core.v1.Pod"}}}}},
	"/apis/apps/v1/deployments":{"get":{"responses":{"200":{"description":"stolen"}}}},
	"/api/v1/pods":{"get":{"responses":{"200":{"description":"stolen"}}}}},
	"definitions":{"io.k8s.api.core.v1.Pod":{"description":"not a pod","type":"object","x-kubernetes-group-version-kind":[
		{"group":"ext.example.com","version":"v1","kind":"Widget"},{"group":"","version":"v1","kind":"Pod"}]}}}`

// documented is an extension with documents that tests change.
type documented struct {
	bench    *bench
	document sync.Map // path to text
	reads    atomic.Int64
}

func newDocumented(t *testing.T) *documented {
	t.Helper()
	d := &documented{}
	d.bench = newBench(t, func(w http.ResponseWriter, r *http.Request) {
		text, ok := d.document.Load(r.URL.Path)
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.URL.Path == "/openapi/v2" {
			etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text.(string))))
			if r.Header.Get("If-None-Match") == etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Etag", etag)
			d.reads.Add(1)
		}
		_, _ = w.Write([]byte(text.(string)))
	})
	d.document.Store("/apis/ext.example.com/v1", resources)
	d.document.Store("/openapi/v2", openAPI)
	d.bench.register("v1", "ext.example.com", nil)
	d.bench.check("v1", "ext.example.com")
	return d
}

// read reads the documents once.
func (d *documented) read() {
	x := (*d.bench.handlers.table.Load())[[2]string{"ext.example.com", "v1"}]
	x.startReading()
	d.bench.handlers.read(context.Background(), x, true)
}

// get returns a published document.
func (d *documented) get(path, accept string, into any) {
	d.bench.Helper()
	documents := discovery.New(discovery.Options{Catalogue: d.bench.handlers.Engine().Types, Vocabulary: d.bench.handlers.Vocabulary, Version: discovery.Version(release.V121), Extensions: d.bench.handlers.Describe()})
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	if err := documents.Serve(w, r); err != nil || w.Code != http.StatusOK {
		d.bench.Fatalf("%s: got %d, %v", path, w.Code, err)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			d.bench.Fatal(err)
		}
	}
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// versionOf returns how the extension is described.
func (d *documented) version() apidiscovery.APIVersionDiscovery {
	d.bench.Helper()
	var list apidiscovery.APIGroupDiscoveryList
	d.get("/apis", aggregated, &list)
	for _, g := range list.Items {
		if g.Name == "ext.example.com" {
			return g.Versions[0]
		}
	}
	d.bench.Fatal("the group is missing")
	return apidiscovery.APIVersionDiscovery{}
}

// TestDiscoveryOfExtensions: the group of an extension is listed among the others, with the
// resources that it lists; these are stale while it is unavailable.
func TestDiscoveryOfExtensions(t *testing.T) {
	d := newDocumented(t)
	if v := d.version(); v.Freshness != apidiscovery.DiscoveryFreshnessStale || len(v.Resources) > 0 {
		t.Errorf("before it is read: got %v", v)
	}
	d.read()
	v := d.version()
	if v.Freshness != apidiscovery.DiscoveryFreshnessCurrent || len(v.Resources) != 1 || v.Resources[0].Resource != "widgets" || v.Resources[0].Scope != apidiscovery.ScopeNamespace ||
		len(v.Resources[0].Subresources) != 1 || v.Resources[0].Subresources[0].Subresource != "status" || v.Resources[0].ResponseKind.Kind != "Widget" {
		t.Errorf("got %+v", v)
	}
	var groups metav1.APIGroupList
	d.get("/apis", "", &groups)
	if last := groups.Groups[len(groups.Groups)-1]; last.Name != "ext.example.com" || last.PreferredVersion.GroupVersion != "ext.example.com/v1" {
		t.Errorf("the last group is %v", last)
	}
	var group metav1.APIGroup
	d.get("/apis/ext.example.com", "", &group)
	if len(group.Versions) != 1 {
		t.Errorf("got %v", group)
	}
	for _, bad := range []string{"{", `{"groupVersion":"apps/v1","resources":[{"name":"deployments"}]}`, strings.Repeat(" ", int(ledger.ExtensionResources.Bytes)+1)} {
		d.document.Store("/apis/ext.example.com/v1", bad)
		d.read()
		if v := d.version(); v.Freshness != apidiscovery.DiscoveryFreshnessStale || len(v.Resources) != 1 {
			t.Errorf("a bad document: got %v", v)
		}
	}
	d.document.Store("/apis/ext.example.com/v1", resources)
	d.read()
	if v := d.version(); v.Freshness != apidiscovery.DiscoveryFreshnessCurrent {
		t.Errorf("a good document again: got %v", v)
	}
	d.bench.extension.Close()
	d.bench.check("v1", "ext.example.com")
	if v := d.version(); v.Freshness != apidiscovery.DiscoveryFreshnessStale || len(v.Resources) != 1 {
		t.Errorf("of an extension that is gone: got %v", v)
	}
}

// document is a part of an OpenAPI document.
type document struct {
	Paths       map[string]map[string]any
	Definitions map[string]map[string]any
}

// TestOpenAPIOfExtensions: the documents of an extension are part of those of the front
// door, which describe no other group version by them.
func TestOpenAPIOfExtensions(t *testing.T) {
	d := newDocumented(t)
	d.read()
	var merged document
	d.get("/openapi/v2", "", &merged)
	path, _ := json.Marshal(merged.Paths["/apis/ext.example.com/v1/widgets"])
	if !strings.Contains(string(path), "io.k8s.api.core.v1.Pod_v2") {
		t.Errorf("the path of the extension is %s", path)
	}
	for _, path := range []string{"/apis/apps/v1/deployments", "/api/v1/pods"} {
		if raw, _ := json.Marshal(merged.Paths[path]); strings.Contains(string(raw), "stolen") || len(merged.Paths[path]) == 0 {
			t.Errorf("%s is %s", path, raw)
		}
	}
	renamed, _ := json.Marshal(merged.Definitions["io.k8s.api.core.v1.Pod_v2"])
	if !strings.Contains(string(renamed), "not a pod") || strings.Contains(string(renamed), `"Pod"`) {
		t.Errorf("the definition of the extension is %s", renamed)
	}
	if pod := merged.Definitions["io.k8s.api.core.v1.Pod"]; pod["description"] == "not a pod" {
		t.Errorf("the definition of pods is %v", pod)
	}
	d.get("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", nil)
	var index struct{ Paths map[string]any }
	d.get("/openapi/v3", "", &index)
	if index.Paths["apis/ext.example.com/v1"] == nil || index.Paths["apis/apps/v1"] == nil {
		t.Errorf("got %v", index)
	}
	d.get("/openapi/v3/apis/ext.example.com/v1", "", nil)
	d.get("/openapi/v3/apis/ext.example.com/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", nil)
	reads := d.reads.Load()
	d.read()
	if now := d.reads.Load(); now != reads {
		t.Error("an unchanged document is read again")
	}
}

// TestHeavyDocuments: documents with more values than may be decoded are not, whichever document it is, and nothing
// of them is kept.
func TestHeavyDocuments(t *testing.T) {
	const many = 2_000_000
	for path, text := range map[string]string{
		"/openapi/v3/apis/ext.example.com/v1": `{"openapi":"3.0.0","paths":{},"x-a":[` + strings.Repeat("[],", many) + `[]]}`,
		"/openapi/v2":                         `{"swagger":"2.0","paths":{},"x-a":[` + strings.Repeat("[],", many) + `[]]}`,
		"/apis/ext.example.com/v1":            `{"groupVersion":"ext.example.com/v1","resources":[` + strings.Repeat("{},", many/2) + `{}]}`,
	} {
		d := newDocumented(t)
		d.bench.handlers.Ledger = ledger.New(256 << 20)
		for path := range map[string]bool{"/openapi/v2": true, "/openapi/v3/apis/ext.example.com/v1": true} {
			d.document.Store(path, "")
		}
		d.document.Store(path, text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d.read()
		runtime.ReadMemStats(&after)
		described := d.bench.handlers.Describe()[0]
		if described.OpenAPI != nil || len(described.Resources) > 2 {
			t.Errorf("%s: %d resources, OpenAPI %v", path, len(described.Resources), described.OpenAPI)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 { // the text here and there, and buffers that grow
			t.Errorf("%s: %d MiB were allocated", path, took>>20)
		}
		if n := d.bench.handlers.Ledger.Held(); n != 0 {
			t.Errorf("%s: %d bytes stay charged", path, n)
		}
	}
}

// TestBadOpenAPIDocuments: a document that cannot be used is left out, and that of the front
// door is as without it.
func TestBadOpenAPIDocuments(t *testing.T) {
	d := newDocumented(t)
	var kept []discovery.Extension
	deep := strings.Repeat(`{"properties":{"a":`, 5000) + `{"type":"string"}` + strings.Repeat("}}", 5000)
	for name, text := range map[string]string{
		"no JSON": "{", "a list": "[]", "no paths": `{"swagger":"2.0"}`, "paths of another kind": `{"swagger":"2.0","paths":[]}`,
		"deep":            `{"swagger":"2.0","info":{"title":"a","version":"1"},"paths":{"/apis/ext.example.com/v1/widgets":{"get":{"responses":{"200":{"description":"a","schema":` + deep + `}}}}}}`,
		"a circle":        strings.Replace(openAPI, `"type":"object"`, `"properties":{"a":{"$ref":"#/definitions/io.k8s.api.core.v1.Pod"}}`, 1),
		"another pointer": strings.ReplaceAll(openAPI, "#/definitions/io", "https://elsewhere.example.com/#/definitions/io"),
		"a lost pointer":  strings.Replace(openAPI, "#/definitions/io.k8s.api.core.v1.Pod", "#/definitions/nowhere", 1),
		"null":            strings.Replace(openAPI, `{"description":"stolen"}`, "null", 1),
		"too large":       `{"swagger":"2.0","paths":{},"x":"` + strings.Repeat("a", int(ledger.ExtensionOpenAPI.Bytes)) + `"}`,
	} {
		d.document.Store("/openapi/v2", text)
		d.read()
		if v := d.version(); v.Freshness != apidiscovery.DiscoveryFreshnessCurrent {
			t.Errorf("%s: the resources are %v", name, v)
		}
		described := d.bench.handlers.Describe()[0]
		if described.OpenAPI == nil {
			continue
		}
		described.Group = "ext" + strconv.Itoa(len(kept)) + ".example.com" // all of them at once
		kept = append(kept, described)
	}
	documents := discovery.New(discovery.Options{Catalogue: d.bench.handlers.Engine().Types, Vocabulary: d.bench.handlers.Vocabulary, Version: discovery.Version(release.V121), Extensions: kept})
	for _, accept := range []string{"application/json", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/openapi/v2", nil)
		r.Header.Set("Accept", accept)
		if err := documents.Serve(w, r); err != nil || w.Code != http.StatusOK || w.Body.Len() < 1<<20 {
			t.Errorf("%s: got %d, %d bytes, %v", accept, w.Code, w.Body.Len(), err)
		}
	}
	if len(kept) == 0 {
		t.Error("nothing was merged")
	}
}
