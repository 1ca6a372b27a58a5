package request

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestParsePath(t *testing.T) {
	for _, c := range []struct {
		path string
		want path
		ok   bool
	}{
		{"/api/v1/nodes", path{version: "v1", resource: "nodes"}, true},
		{"/api/v1/nodes/n1/status", path{version: "v1", resource: "nodes", name: "n1", subresource: "status"}, true},
		{"/api/v1/namespaces", path{version: "v1", resource: "namespaces"}, true},
		{"/api/v1/namespaces/a", path{version: "v1", resource: "namespaces", name: "a"}, true},
		{"/api/v1/namespaces/a/status", path{version: "v1", resource: "namespaces", name: "a", subresource: "status"}, true},
		{"/api/v1/namespaces/a/finalize", path{version: "v1", resource: "namespaces", name: "a", subresource: "finalize"}, true},
		{"/api/v1/namespaces/a/pods", path{version: "v1", namespace: "a", resource: "pods"}, true},
		{"/apis/apps/v1/namespaces/a/deployments/d/scale", path{group: "apps", version: "v1", namespace: "a", resource: "deployments", name: "d", subresource: "scale"}, true},
		{"/api/v1/namespaces/a/services/s:80/proxy/x/y", path{version: "v1", namespace: "a", resource: "services", name: "s:80", subresource: "proxy", subpath: "/x/y"}, true},
		{"/api/v1/watch/namespaces/a/pods", path{version: "v1", namespace: "a", resource: "pods", watch: true}, true},
		{"/apis/rbac/v1/clusterroles/system:a%2Fb", path{group: "rbac", version: "v1", resource: "clusterroles", name: "system:a/b"}, true},
		{"/api/v1", path{}, false}, {"/apis/apps/v1", path{}, false}, {"/", path{}, false}, {"/healthz", path{}, false},
		{"/api/v1/namespaces//pods", path{}, false}, {"/api/v1/pods/%zz", path{}, false},
	} {
		got, ok := parsePath(c.path)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %+v %v, want %+v %v", c.path, got, ok, c.want, c.ok)
		}
	}
}

func TestVerbs(t *testing.T) {
	for _, c := range []struct{ method, path, query, want string }{
		{"GET", "/api/v1/pods", "", "list"}, {"GET", "/api/v1/pods", "watch=1", "watch"}, {"GET", "/api/v1/pods", "watch=false", "list"},
		{"GET", "/api/v1/watch/pods", "", "watch"}, {"GET", "/api/v1/namespaces/a/pods/x", "", "get"},
		{"GET", "/api/v1/namespaces/a/pods/x", "watch=true", "get"}, {"GET", "/api/v1/pods", "watch=", "watch"},
		{"GET", "/api/v1/pods", "watch=False", "list"}, {"GET", "/api/v1/watch/namespaces/a/pods/x", "", "watch"},
		{"GET", "/api/v1/namespaces/a/pods/x/status", "watch=1", "get"},
		{"POST", "/api/v1/namespaces/a/pods", "", "create"}, {"POST", "/api/v1/namespaces/a/pods/x/binding", "", "create"},
		{"POST", "/api/v1/namespaces/a/pods/x", "", "create"}, {"PUT", "/api/v1/namespaces/a/pods/x", "", "update"},
		{"PUT", "/api/v1/namespaces/a/pods", "", "update"}, {"PATCH", "/api/v1/namespaces/a/pods/x", "", "patch"},
		{"DELETE", "/api/v1/namespaces/a/pods", "", "deletecollection"}, {"DELETE", "/api/v1/namespaces/a/pods/x", "", "delete"},
		{"TRACE", "/api/v1/pods", "", ""},
	} {
		p, _ := parsePath(c.path)
		query, _ := url.ParseQuery(c.query)
		if got := p.verb(c.method, query); got != c.want {
			t.Errorf("%s %s?%s: got %q, want %q", c.method, c.path, c.query, got, c.want)
		}
	}
}

// TestUnserved requests paths that do not exist: the error is returned after
// authorization.
func TestUnserved(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	e := &typesystem.Engine{Types: types}
	for _, c := range []struct {
		method, path string
		code         int
		want         services.Attributes
	}{
		{"GET", "/api/v1/foos", 404, services.Attributes{Verb: "list", Version: "v1", Resource: "foos"}},
		{"GET", "/apis/foo/v1/namespaces/a/bars/b", 404, services.Attributes{Verb: "get", Group: "foo", Version: "v1", Namespace: "a", Resource: "bars", Name: "b"}},
		{"GET", "/apis/apps/v1/namespaces/a/deployments/d/foo", 404, services.Attributes{Verb: "get", Group: "apps", Version: "v1", Namespace: "a", Resource: "deployments", Name: "d", Subresource: "foo"}},
		{"POST", "/apis/apps/v1/namespaces/a/deployments/d/status/x", 404, services.Attributes{Verb: "create", Group: "apps", Version: "v1", Namespace: "a", Resource: "deployments", Name: "d", Subresource: "status"}},
		{"GET", "/api/v1/namespaces/a/services/s/proxy/x", 0, services.Attributes{Verb: "get", Version: "v1", Namespace: "a", Resource: "services", Name: "s", Subresource: "proxy"}},
		{"POST", "/api/v1/configmaps", 405, services.Attributes{Verb: "create", Version: "v1", Resource: "configmaps"}},
		{"PUT", "/api/v1/namespaces/a/pods", 405, services.Attributes{Verb: "update", Version: "v1", Namespace: "a", Resource: "pods"}},
		{"POST", "/api/v1/namespaces/a/pods/x", 405, services.Attributes{Verb: "create", Version: "v1", Namespace: "a", Resource: "pods", Name: "x"}},
		{"POST", "/api/v1/watch/namespaces/a/pods", 405, services.Attributes{Verb: "create", Version: "v1", Namespace: "a", Resource: "pods"}},
		{"GET", "/api/v1/watch/namespaces/a/pods/x/exec", 405, services.Attributes{Verb: "watch", Version: "v1", Namespace: "a", Resource: "pods", Name: "x", Subresource: "exec"}},
		{"POST", "/api/v1/watch/namespaces/a/pods/x/exec", 405, services.Attributes{Verb: "create", Version: "v1", Namespace: "a", Resource: "pods", Name: "x", Subresource: "exec"}},
		{"GET", "/api/v1/watch/nodes/x/proxy", 405, services.Attributes{Verb: "watch", Version: "v1", Resource: "nodes", Name: "x", Subresource: "proxy"}},
		{"GET", "/api/v1/watch/namespaces/a/pods/x/status", 405, services.Attributes{Verb: "watch", Version: "v1", Namespace: "a", Resource: "pods", Name: "x", Subresource: "status"}},
		{"GET", "/api/v1/namespaces/a/pods/x/exec", 0, services.Attributes{Verb: "get", Version: "v1", Namespace: "a", Resource: "pods", Name: "x", Subresource: "exec"}},
		{"OPTIONS", "/api/v1/nodes", 405, services.Attributes{Version: "v1", Resource: "nodes"}},
		{"GET", "/api/v1/nodes/..", 400, services.Attributes{Verb: "get", Version: "v1", Resource: "nodes", Name: ".."}},
		{"GET", "/api/v1/pods/x", 404, services.Attributes{Verb: "get", Version: "v1", Resource: "pods", Name: "x"}},
		{"GET", "/api/v1/nodes/x", 0, services.Attributes{Verb: "get", Version: "v1", Resource: "nodes", Name: "x"}},
	} {
		r := &Request{Request: httptest.NewRequest(c.method, c.path, nil)}
		isResource, err := r.Identify(e)
		if got := r.Attributes(); !isResource || err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: got %+v, %v; want %+v", c.method, c.path, got, err, c.want)
		}
		code := 0
		if r.Plain != nil {
			w := httptest.NewRecorder()
			if err := r.Plain(w, r); err != nil {
				code = int(services.AsStatus(err).Code)
			} else {
				code = w.Code
			}
		}
		if code != c.code {
			t.Errorf("%s %s: got %d, want %d", c.method, c.path, code, c.code)
		}
	}
}

// TestSelected checks which single name a request selects.
func TestSelected(t *testing.T) {
	for _, c := range []struct{ verb, name, query, want string }{
		{"get", "x", "", "x"}, {"list", "", "", ""}, {"list", "", "fieldSelector=metadata.name%3Dy", "y"},
		{"watch", "", "fieldSelector=metadata.name%3Dy,type%3Dz", "y"}, {"deletecollection", "", "fieldSelector=metadata.name!%3Dy", ""},
		{"create", "", "fieldSelector=metadata.name%3Dy", ""}, {"list", "", "fieldSelector=%2C%2C%3D", ""},
	} {
		query, _ := url.ParseQuery(c.query)
		if got := (&Request{Verb: c.verb, Name: c.name, Query: query}).selected(); got != c.want {
			t.Errorf("%s %s?%s: got %q, want %q", c.verb, c.name, c.query, got, c.want)
		}
	}
}

// TestLongQueries: what is too long is refused before it is parsed, for callers who are not known yet.
func TestLongQueries(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	for query, refused := range map[string]bool{
		"fieldSelector=" + strings.Repeat("a%3D,", 170_000): true, "labelSelector=" + strings.Repeat("a,", 11_000) + "a": true,
		"labelSelector=a&labelSelector=" + strings.Repeat("a", 70_000): true, strings.Repeat("a&", 11_000): true, "": false,
		"labelSelector=" + strings.Repeat("a,", 9_000) + "a": false, "pretty=" + strings.Repeat("a", 900_000): false,
	} {
		r := &Request{Request: httptest.NewRequest(http.MethodGet, "/api/v1/pods?"+query, nil)}
		_, err := r.Identify(&typesystem.Engine{Types: types})
		if status := services.AsStatus(err); refused != (err != nil) || refused && status.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%.30s of %d bytes: %v", query, len(query), err)
		}
	}
	r := &Request{Request: httptest.NewRequest(http.MethodGet, "/api/v1/nodes/n/proxy"+strings.Repeat("/a", 2000), nil)}
	if _, err := r.Identify(&typesystem.Engine{Types: types}); err == nil || services.AsStatus(err).Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a path of 2,000 segments: %v", err)
	}
	long := "metadata.name=x," + strings.Repeat("a=b,", 2000) + "a=b"
	if got := (&Request{Verb: "list", Query: url.Values{"fieldSelector": {long}}}).selected(); got != "" {
		t.Errorf("a long selector is parsed before the caller is known: %q", got)
	}
}

// TestSelectorsAreCharged: a user may have as many requests with long selectors, or long URLs and headers, as its share
// of memory has room for, until they end.
func TestSelectorsAreCharged(t *testing.T) {
	query := url.Values{"labelSelector": {strings.Repeat("abcd,", 9_000) + "a"}}
	for what, most := range map[string]int{"/api/v1/pods?watch=1&" + query.Encode(): 30, "/api/v1/pods?watch=1&pretty=" + strings.Repeat("a", 900_000): 30} {
		memory := ledger.New(256 << 20)
		var open []*Request
		for len(open) <= most {
			r := &Request{Request: httptest.NewRequest(http.MethodGet, what, nil), Verb: "watch", User: services.UserInfo{Name: "mallory"}}
			r.Query = r.URL.Query()
			err := r.Receive(httptest.NewRecorder(), memory)
			if services.IsReason(err, services.ReasonTooManyRequests) {
				break
			}
			open = append(open, r)
		}
		if len(open) < 5 || len(open) > most {
			t.Errorf("%.60s: %d are open at once", what, len(open))
		}
		for _, r := range open {
			r.Memory.Release()
		}
		if memory.Held() != 0 {
			t.Errorf("%d bytes stay", memory.Held())
		}
	}
}

// FuzzParsePath searches for paths that escape their segments.
func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"/api/v1/namespaces/a/pods/x", "/apis/a/b/c/%2e%2e/d", "//", "/api/v1/watch", "/api/v1/namespaces/a/status"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parsePath(text)
		if ok && (p.version == "" || p.resource == "") {
			t.Errorf("%q: a resource path without version or resource: %+v", text, p)
		}
		if ok && p.subresource != "" && p.name == "" {
			t.Errorf("%q: a subresource of nothing: %+v", text, p)
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			p.verb(method, nil)
		}
	})
}

// TestOnlyCreated: from release 1.36 on, objects that can only be created have no path.
func TestOnlyCreated(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: r})
		if err != nil {
			t.Fatal(err)
		}
		want := http.StatusNotFound
		if r == release.V121 {
			want = http.StatusMethodNotAllowed
		}
		unserved := &Request{Request: httptest.NewRequest("PUT", "/apis/authentication.k8s.io/v1/tokenreviews/a", nil)}
		if _, err := unserved.Identify(&typesystem.Engine{Types: types}); err != nil || unserved.Plain == nil {
			t.Fatal(err)
		}
		if got := services.AsStatus(unserved.Plain(nil, unserved)); int(got.Code) != want {
			t.Errorf("release %s: %d, want %d", r, got.Code, want)
		}
	}
}

// TestNamed: an object that groups share is missing in the group of the request.
func TestNamed(t *testing.T) {
	shared := &catalogue.Type{Group: "events.example.com", Resource: "events", Key: resource.GroupResource{Resource: "events"}}
	for name, c := range map[string]struct {
		of   *catalogue.Type
		err  *services.Status
		want string
	}{
		"shared":       {shared, services.NotFound("", "events", "a"), `events.events.example.com "a" not found`},
		"own":          {&catalogue.Type{Resource: "events", Key: resource.GroupResource{Resource: "events"}}, services.NotFound("", "events", "a"), `events "a" not found`},
		"another type": {shared, services.NotFound("", "namespaces", "a"), `namespaces "a" not found`},
		"no type":      {nil, services.NotFound("", "events", "a"), `events "a" not found`},
		"conflict":     {shared, services.Conflict("", "events", "a", "why"), `Operation cannot be fulfilled on events "a": why`},
	} {
		if got := services.AsStatus((&Request{Type: c.of}).Named(c.err)); got.Message != c.want {
			t.Errorf("%s: %s, want %s", name, got.Message, c.want)
		}
	}
}
