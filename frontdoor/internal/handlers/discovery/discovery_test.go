package discovery

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"weak"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// serveDocuments starts a server with all documents in a vocabulary.
func serveDocuments(t *testing.T, v vocabulary.Vocabulary, config ...string) *httptest.Server {
	t.Helper()
	return serveRelease(t, release.V121, v, config...)
}

func serveRelease(t *testing.T, served release.Release, v vocabulary.Vocabulary, config ...string) *httptest.Server {
	t.Helper()
	parsed, err := runtimeconfig.Parse(config...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.New(catalogue.Options{Vocabulary: v, RuntimeConfig: parsed})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{Catalogue: c, Vocabulary: v, Release: served, Version: Version(served), OtherPaths: []string{"/healthz"}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.Serve(w, r); err != nil {
			http.Error(w, err.Error(), int(services.AsStatus(err).Code))
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// get reads a document as JSON.
func get(t *testing.T, server *httptest.Server, path string, into any) *http.Response {
	t.Helper()
	response, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s", path, response.Status, data)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return response
}

func TestStockClient(t *testing.T) {
	server := serveDocuments(t, vocabulary.K8s())
	for _, legacy := range []bool{false, true} {
		client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1})
		client.UseLegacyDiscovery = legacy
		groups, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatalf("legacy %v: %v", legacy, err)
		}
		var types, subresources int
		for _, list := range lists {
			for _, r := range list.APIResources {
				if strings.Contains(r.Name, "/") {
					subresources++
				} else {
					types++
				}
			}
		}
		if len(groups) != 23 || types != 89 || subresources != 51 {
			t.Errorf("legacy %v: %d groups, %d types, %d subresources", legacy, len(groups), types, subresources)
		}
		resources, err := restmapper.GetAPIGroupResources(client)
		if err != nil {
			t.Fatal(err)
		}
		mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(resources), client, nil)
		shortcuts := map[string]string{
			"po": "/v1, Kind=Pod", "deploy": "apps/v1, Kind=Deployment", "cj": "batch/v1, Kind=CronJob", "hpa": "autoscaling/v1, Kind=HorizontalPodAutoscaler",
			"crd": "apiextensions.k8s.io/v1, Kind=CustomResourceDefinition", "csr": "certificates.k8s.io/v1, Kind=CertificateSigningRequest",
		}
		if legacy { // The client drops the order of groups when it reads the aggregated form.
			shortcuts["ing"], shortcuts["ev"] = "networking.k8s.io/v1, Kind=Ingress", "/v1, Kind=Event"
		}
		for short, want := range shortcuts {
			kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: short})
			if err != nil || kind.String() != want {
				t.Errorf("legacy %v: %s is %s, %v; want %s", legacy, short, kind, err, want)
			}
		}
	}
}

func TestStockClientReadsVersionAndOpenAPI(t *testing.T) {
	server := serveDocuments(t, vocabulary.K8s())
	client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1})
	version, err := client.ServerVersion()
	if err != nil || version.Major != "1" || version.Minor != "21" || !strings.HasPrefix(version.GitVersion, "v1.21.") {
		t.Errorf("version %v, %v", version, err)
	}
	document, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(document.Definitions.AdditionalProperties); n < 500 {
		t.Errorf("%d definitions", n)
	}
	root := openapi3.NewRoot(client.OpenAPIV3())
	versions, err := root.GroupVersions()
	if err != nil || len(versions) != 41 {
		t.Errorf("%d group versions, %v", len(versions), err)
	}
	for _, gv := range versions {
		if _, err := root.GVSpec(gv); err != nil {
			t.Errorf("%s: %v", gv, err)
		}
	}
	apps, err := root.GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	patch := apps.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"].Patch
	var names []string
	for _, p := range patch.Parameters {
		names = append(names, p.Name)
	}
	for _, name := range []string{"dryRun", "fieldManager", "fieldValidation", "force"} {
		if !slices.Contains(names, name) {
			t.Errorf("a patch has no parameter %s: %v", name, names)
		}
	}
	about := map[string]string{}
	for _, p := range apps.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments"].Get.Parameters {
		about[p.Name] = p.Description
	}
	// The tests of kubectl search for these words.
	for name, want := range map[string]string{"labelSelector": "list of returned", "fieldSelector": "list of returned", "watch": "Watch for changes to the described resources", "sendInitialEvents": ""} {
		if got, ok := about[name]; !ok || !strings.Contains(got, want) {
			t.Errorf("%s of a list is described with %q, %v", name, got, ok)
		}
	}
	if _, ok := apps.Components.Schemas["io.k8s.api.core.v1.PodSpec"]; !ok {
		t.Error("the schemas that Deployment refers to are not in its document")
	}
	for name, want := range map[string]string{"io.k8s.apimachinery.pkg.api.resource.Quantity": "string number", "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "integer string"} {
		var types []string
		for _, one := range apps.Components.Schemas[name].OneOf {
			types = append(types, one.Type...)
		}
		if got := strings.Join(types, " "); got != want || len(apps.Components.Schemas[name].Type) > 0 {
			t.Errorf("%s is one of %s", name, got)
		}
	}
}

// TestResourceLists checks properties that clients rely on, in both vocabularies.
func TestResourceLists(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		server := serveDocuments(t, v)
		for _, want := range []struct {
			path     string
			resource metav1.APIResource
		}{
			{"/api/v1", metav1.APIResource{Name: "pods", Namespaced: true, Kind: "Pod", ShortNames: []string{"po"}, Categories: []string{"all"},
				Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}, StorageVersionHash: "xPOwRZ+Yhw8="}},
			{"/api/v1", metav1.APIResource{Name: "pods/eviction", Namespaced: true, Group: "policy", Version: "v1beta1", Kind: "Eviction", Verbs: []string{"create"}}},
			{"/api/v1", metav1.APIResource{Name: "pods/exec", Namespaced: true, Kind: "PodExecOptions", Verbs: []string{"create", "get"}}},
			{"/api/v1", metav1.APIResource{Name: "serviceaccounts/token", Namespaced: true, Group: v.Group("authentication."), Version: "v1", Kind: "TokenRequest", Verbs: []string{"create"}}},
			{"/api/v1", metav1.APIResource{Name: "namespaces/finalize", Kind: "Namespace", Verbs: []string{"update"}}},
			{"/apis/apps/v1", metav1.APIResource{Name: "deployments/scale", Namespaced: true, Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: []string{"get", "patch", "update"}}},
			{"/apis/" + v.Group("certificates.") + "/v1", metav1.APIResource{Name: "certificatesigningrequests/approval", Kind: "CertificateSigningRequest", Verbs: []string{"get", "patch", "update"}}},
			{"/apis/" + v.Group("authorization.") + "/v1", metav1.APIResource{Name: "subjectaccessreviews", Kind: "SubjectAccessReview", Verbs: []string{"create"}}},
		} {
			var list metav1.APIResourceList
			get(t, server, want.path, &list)
			if core := want.path == "/api/v1"; core != (list.APIVersion == "") {
				t.Errorf("%s has apiVersion %q", want.path, list.APIVersion)
			}
			i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == want.resource.Name })
			if i < 0 {
				t.Errorf("%s: no %s in %s", v.Name, want.resource.Name, want.path)
				continue
			}
			if got, _ := json.Marshal(list.APIResources[i]); string(got) != marshal(want.resource) {
				t.Errorf("%s: got  %s\nwant %s", v.Name, got, marshal(want.resource))
			}
		}
	}
}

func marshal(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// TestNeutralNames: documents in the neutral vocabulary contain no original names of
// groups and extensions.
func TestNeutralNames(t *testing.T) {
	server := serveDocuments(t, vocabulary.Platform())
	var document struct {
		Paths       map[string]json.RawMessage
		Definitions map[string]json.RawMessage
	}
	get(t, server, "/openapi/v2", &document)
	original := vocabulary.K8s()
	for path, item := range document.Paths {
		if strings.Contains(path, ".k8s.io") || strings.Contains(string(item), `"`+original.Extension) || strings.Contains(string(item), original.Protobuf) {
			t.Errorf("%s has original names", path)
		}
	}
	for name, schema := range document.Definitions {
		if strings.HasPrefix(name, original.Definitions) || strings.Contains(string(schema), `"`+original.Extension) || strings.Contains(string(schema), "#/definitions/"+original.Definitions) {
			t.Errorf("%s has original names", name)
		}
	}
	if !strings.Contains(string(document.Definitions["io.platform.api.core.v1.ServiceSpec"]), `"x-platform-list-map-keys":["port","protocol"]`) {
		t.Error("the list map keys of service ports are not published")
	}
}

// TestDocumentsAreClosed: every reference in a document resolves within it.
func TestDocumentsAreClosed(t *testing.T) {
	server := serveDocuments(t, vocabulary.Platform())
	for path, prefix := range map[string]string{
		"/openapi/v2": "#/definitions/", "/openapi/v3/apis/apps/v1": "#/components/schemas/", "/openapi/v3/api/v1": "#/components/schemas/",
	} {
		var document map[string]any
		get(t, server, path, &document)
		schemas, _ := document["definitions"].(map[string]any)
		if components, ok := document["components"].(map[string]any); ok {
			schemas = components["schemas"].(map[string]any)
		}
		walk(document, func(reference string) {
			if _, ok := schemas[strings.TrimPrefix(reference, prefix)]; !ok {
				t.Errorf("%s: %s leads nowhere", path, reference)
			}
		})
	}
}

func walk(value any, visit func(reference string)) {
	switch v := value.(type) {
	case map[string]any:
		if reference, ok := v["$ref"].(string); ok {
			visit(reference)
		}
		for _, member := range v {
			walk(member, visit)
		}
	case []any:
		for _, member := range v {
			walk(member, visit)
		}
	}
}

func TestOperationIDsAreUnique(t *testing.T) {
	server := serveDocuments(t, vocabulary.K8s())
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	get(t, server, "/openapi/v2", &document)
	seen := map[string]string{}
	for path, item := range document.Paths {
		for method, raw := range item {
			var operation struct{ OperationID string }
			if method == "parameters" || json.Unmarshal(raw, &operation) != nil {
				continue
			}
			if other, ok := seen[operation.OperationID]; ok {
				t.Errorf("%s %s and %s are both %s", method, path, other, operation.OperationID)
			}
			seen[operation.OperationID] = method + " " + path
		}
	}
}

func TestRuntimeConfig(t *testing.T) {
	server := serveDocuments(t, vocabulary.Platform(), "autoscaling/v1=false", "policy/v1=false,policy/v1beta1=false")
	var groups metav1.APIGroupList
	get(t, server, "/apis", &groups)
	for _, g := range groups.Groups {
		if g.Name == "policy" || g.Name == "autoscaling" && g.PreferredVersion.Version != "v2beta2" {
			t.Errorf("group %s is listed with %v", g.Name, g.Versions)
		}
	}
	if response, err := server.Client().Get(server.URL + "/apis/autoscaling/v1"); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("a version that is switched off: %v, %v", response.Status, err)
	}
}

// TestEncodings reads each document in YAML and Protobuf, too, as stock clients decode them.
func TestEncodings(t *testing.T) {
	server := serveDocuments(t, vocabulary.K8s())
	for _, path := range []string{"/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1"} {
		decoded := map[string]kruntime.Object{}
		for _, accept := range []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"} {
			request, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", accept)
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != accept {
				t.Fatalf("%s as %s: %s, %s, %v", path, accept, response.Status, response.Header.Get("Content-Type"), err)
			}
			kind := schema.GroupVersionKind{Version: "v1"} // the documents of the core group name no version
			if decoded[accept], _, err = scheme.Codecs.UniversalDeserializer().Decode(data, &kind, nil); err != nil {
				t.Fatalf("%s as %s: %v", path, accept, err)
			}
			decoded[accept].GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		for accept, object := range decoded {
			if !equality.Semantic.DeepEqual(object, decoded["application/json"]) {
				t.Errorf("%s as %s: %#v", path, accept, object)
			}
		}
	}
}

// TestAggregatedVersions reads the aggregated document in the versions of each release.
func TestAggregatedVersions(t *testing.T) {
	for served, codes := range map[release.Release]map[string]int{release.V121: {"v2": 200, "v2beta1": 200}, release.V136: {"v2": 200, "v2beta1": 406}} {
		server := serveRelease(t, served, vocabulary.K8s())
		for version, code := range codes {
			request, err := http.NewRequest(http.MethodGet, server.URL+"/apis", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList")
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != code {
				t.Errorf("%s at %s: %s", version, served, response.Status)
			}
		}
	}
}

// unread is a response of which a client has read nothing yet.
type unread struct {
	http.ResponseWriter
	once        sync.Once
	begun, read chan struct{}
}

func (u *unread) Write(p []byte) (int, error) {
	u.once.Do(func() { u.begun <- struct{}{} })
	<-u.read
	return len(p), nil
}

// TestUnreadDocuments: responses that clients do not read share the document, in each of its forms.
func TestUnreadDocuments(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	documents := New(Options{Catalogue: types, Vocabulary: vocabulary.K8s(), Version: Version(release.V121)})
	for _, path := range []string{"/openapi/v2", "/apis?pretty=true"} {
		ask := func(w http.ResponseWriter) {
			if err := documents.Serve(w, httptest.NewRequest(http.MethodGet, path, nil)); err != nil {
				t.Error(err)
			}
		}
		w := httptest.NewRecorder()
		ask(w)
		const requests = 50
		begun, read := make(chan struct{}), make(chan struct{})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() { ask(&unread{ResponseWriter: httptest.NewRecorder(), begun: begun, read: read}) })
		}
		for range requests {
			<-begun
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		close(read)
		all.Wait()
		if held, most := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2*w.Body.Len()+requests*(64<<10)); held > most {
			t.Errorf("%s: %d unread responses of %d bytes hold %d bytes", path, requests, w.Body.Len(), held)
		}
	}
}

// TestGenerationsEnd: documents hold nothing of those that they replace, whichever of them were requested, and whether
// the types have changed or only the extensions.
func TestGenerationsEnd(t *testing.T) {
	for _, requested := range []string{"", "/version", "/apis", "/openapi/v3", "/openapi/v2"} {
		for _, typesChange := range []bool{true, false} {
			var now *Documents
			var before []weak.Pointer[Documents]
			var catalogues []weak.Pointer[catalogue.Catalogue]
			var types *catalogue.Catalogue
			for generation := range 4 {
				if types == nil || typesChange {
					made, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
					if err != nil {
						t.Fatal(err)
					}
					types = made
					catalogues = append(catalogues, weak.Make(types))
				}
				version := Version(release.V121)
				version.GitCommit = strconv.Itoa(generation)
				now = New(Options{Catalogue: types, Vocabulary: vocabulary.K8s(), Version: version, Before: now, Union: func(all []apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery { return all }})
				before = append(before, weak.Make(now))
				if requested != "" {
					if err := now.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, requested, nil)); err != nil {
						t.Fatal(err)
					}
				}
			}
			runtime.GC()
			for i := range before[:3] {
				if before[i].Value() != nil || typesChange && catalogues[i].Value() != nil {
					t.Errorf("%q, types change %v: generation %d is kept: documents %v, types %v", requested, typesChange, i, before[i].Value() != nil, typesChange && catalogues[i].Value() != nil)
				}
			}
			runtime.KeepAlive(now)
			runtime.KeepAlive(types)
		}
	}
}

// TestSingularNames: built-in types have singular names in discovery since 1.27.
func TestSingularNames(t *testing.T) {
	for served, want := range map[release.Release]string{release.V121: "", release.V136: "pod"} {
		var list metav1.APIResourceList
		get(t, serveRelease(t, served, vocabulary.K8s()), "/api/v1", &list)
		for _, r := range list.APIResources {
			if r.Name == "pods" && r.SingularName != want {
				t.Errorf("%s: %q, want %q", served, r.SingularName, want)
			}
		}
	}
}

func TestRequests(t *testing.T) {
	server := serveDocuments(t, vocabulary.Platform())
	do := func(method, path, header, value string) *http.Response {
		request, err := http.NewRequest(method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			request.Header.Set(header, value)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	if legible := do("GET", "/apis", "User-Agent", "curl/8"); legible.Header.Get("Etag") != "" {
		t.Error("what is written for people has the tag of what is written for machines")
	}
	etag := do("GET", "/apis", "", "").Header.Get("Etag")
	for _, c := range []struct {
		method, path, header, value string
		status                      int
		contentType                 string
	}{
		{"GET", "/apis", "If-None-Match", etag, 304, ""},
		{"GET", "/apis", "If-None-Match", `"other"`, 200, "application/json"},
		{"GET", "/apis/", "", "", 200, "application/json"},
		{"HEAD", "/apis", "", "", 200, "application/json"},
		{"POST", "/apis", "", "", 405, ""},
		{"GET", "/apis/nowhere", "", "", 404, "text/plain; charset=utf-8"},
		{"GET", "/openapi/v3/nowhere", "", "", 404, "text/plain; charset=utf-8"},
		{"GET", "/version", "User-Agent", "curl/8", 200, "application/json"},
		{"GET", "/apis", "Accept", "text/html", 406, ""},
		{"GET", "/apis", "Accept", "text/html, */*;q=0.1", 200, "application/json"},
		{"GET", "/apis", "Accept", "application/json;g=apidiscovery.platform.io;v=v2;as=APIGroupDiscoveryList,application/json", 200, "application/json;g=apidiscovery.platform.io;v=v2;as=APIGroupDiscoveryList"},
		{"GET", "/apis", "Accept", "application/json;g=apidiscovery.platform.io;v=v9;as=APIGroupDiscoveryList,application/json", 200, "application/json"},
		{"GET", "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"},
		{"GET", "/openapi/v3/apis/apps/v1", "Accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", 200, "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"},
		{"GET", "/", "", "", 200, "application/json"},
		{"GET", "/version", "Accept-Encoding", "identity", 200, "application/json"},
	} {
		response := do(c.method, c.path, c.header, c.value)
		if response.StatusCode != c.status || c.contentType != "" && response.Header.Get("Content-Type") != c.contentType {
			t.Errorf("%s %s with %s %s: %s, %s", c.method, c.path, c.header, c.value, response.Status, response.Header.Get("Content-Type"))
		}
	}
	var index metav1.RootPaths
	get(t, server, "/", &index)
	for _, path := range []string{"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/openapi/v2", "/openapi/v3", "/version"} {
		if !slices.Contains(index.Paths, path) {
			t.Errorf("%s is not listed at /", path)
		}
	}
}
