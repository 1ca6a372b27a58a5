package writes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/auditing"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	leases     = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
)

// TestManyWritersLoseNothing runs 64 concurrent patches of one object without a
// resourceVersion, half of them through another front door: all must be applied.
func TestManyWritersLoseNothing(t *testing.T) {
	store := fake.New(t).Store()
	doors := []*client{newClient(t, store, "10.0.0.0/24"), newClient(t, store, "10.0.0.0/24")}
	doors[0].must("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"}}`)
	const writers = 64
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if _, err := doors[i%2].do("PATCH", configMaps+"/shared", fmt.Sprintf(`{"data":{"k%d":"v"}}`, i)); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	got := doors[0].must("PATCH", configMaps+"/shared", `{}`)
	if data, _ := got["data"].(map[string]any); len(data) != writers {
		t.Errorf("%d of %d patches are there", len(data), writers)
	}
}

// TestUpdateOfMissing: an update of a missing object creates it for some types.
func TestUpdateOfMissing(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"%s}}`
	c.refused(services.ReasonNotFound, "PUT", configMaps+"/l", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"l"}}`)
	c.refused(services.ReasonConflict, "PUT", leases+"/l", fmt.Sprintf(lease, `,"uid":"7"`))
	allow := c.handlers.Allow
	c.handlers.Allow = func(_ *request.Request, a services.Attributes) error {
		return services.Forbidden(a.Group, a.Resource, a.Name, a.Verb)
	}
	c.refused(services.ReasonForbidden, "PUT", leases+"/l", fmt.Sprintf(lease, ""))
	c.handlers.Allow = allow
	created := c.must("PUT", leases+"/l", fmt.Sprintf(lease, ""))
	meta := created["metadata"].(map[string]any)
	c.refused(services.ReasonInvalid, "PUT", leases+"/l", fmt.Sprintf(lease, ""))
	c.must("PUT", leases+"/l", fmt.Sprintf(lease, fmt.Sprintf(`,"resourceVersion":%q`, meta["resourceVersion"])))
	c.must("PATCH", leases+"/l", `{"spec":{"holderIdentity":"me"}}`)
}

// TestUpdateNamesItsObject: metadata.name is required in an update, but not in a patch.
func TestUpdateNamesItsObject(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.must("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
	c.refused(services.ReasonBadRequest, "PUT", configMaps+"/a", `{"apiVersion":"v1","kind":"ConfigMap"}`)
	c.refused(services.ReasonBadRequest, "PUT", configMaps+"/a", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`)
	c.must("PATCH", configMaps+"/a", `{"metadata":{"labels":{"a":"b"}}}`)
}

// TestVersionOfNew: a new object has no version. One that is no number, or 0, has no meaning.
func TestVersionOfNew(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d","resourceVersion":%q}}`
	for i, version := range []string{"x", "0", "-1", "1.5", ""} {
		created := c.must("POST", configMaps, fmt.Sprintf(body, i, version))
		if got := created["metadata"].(map[string]any)["resourceVersion"]; got == version {
			t.Errorf("version %q is kept", version)
		}
	}
}

// TestNothingChanges: a write without changes keeps the resourceVersion.
func TestNothingChanges(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}}`
	version := func(object map[string]any) any { return object["metadata"].(map[string]any)["resourceVersion"] }
	first := version(c.must("POST", configMaps, body))
	for _, again := range [][2]string{{"PUT", body}, {"PATCH", `{"data":{"a":"b"}}`}} {
		if got := version(c.must(again[0], configMaps+"/a", again[1])); got != first {
			t.Errorf("%s: version %v, want %v", again[0], got, first)
		}
	}
}

// TestGeneratedNamesMeet creates many objects with the same generateName.
func TestGeneratedNamesMeet(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if _, err := c.do("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestCreateWithVersion: a resourceVersion in a create is refused when the object would be stored, after
// all other checks, and is none of the business of a dry-run.
func TestCreateWithVersion(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	body := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"resourceVersion":"7"}}`, name)
	}
	if meta := c.must("POST", configMaps+"?dryRun=All", body("a"))["metadata"].(map[string]any); meta["resourceVersion"] != "7" {
		t.Errorf("dry-run: %v", meta)
	}
	c.refused(services.ReasonInvalid, "POST", configMaps, body("A"))
	c.refused(services.ReasonInvalid, "POST", configMaps+"?dryRun=All", body("A"))
	if _, err := c.do("POST", configMaps, body("a")); services.AsStatus(err).Code != http.StatusInternalServerError {
		t.Errorf("create: %v", err)
	}
	c.must("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"x"}}`)
	c.refused(services.ReasonAlreadyExists, "POST", configMaps+"?dryRun=All", body("a"))
}

// TestOwnManager: what the front door creates itself has the manager of the API server.
func TestOwnManager(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	ty, _ := c.engine.Types.Lookup("", "v1", "configmaps")
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"}, "data": map[string]any{"a": "b"}}
	if err := c.handlers.Create(t.Context(), c.engine, ty, object); err != nil {
		t.Fatal(err)
	}
	stored, err := c.handlers.Store.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: ty.Key, Namespace: "default", Name: "a"}})
	if err != nil || !strings.Contains(string(stored.JSON), `"manager":"kube-apiserver","operation":"Update"`) {
		t.Errorf("%v: %s", err, stored.JSON)
	}
}

// TestAuditNamesOfNew: the event of a create names the object as its body does; a name that is generated
// is not in the body.
func TestAuditNamesOfNew(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	for meta, want := range map[string]string{`{"name":"a"}`: "a", `{"name":"A"}`: "A", `{"generateName":"b-"}`: ""} {
		var line strings.Builder
		auditor := auditing.Auditor{Log: audit.NewLog(&line, "audit/v1"), StatusOf: func(http.ResponseWriter, error) int { return http.StatusOK }}
		r := httptest.NewRequestWithContext(t.Context(), "POST", configMaps, strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":`+meta+`}`))
		r.Header.Set("Content-Type", "application/json")
		req := &request.Request{Request: r, User: services.UserInfo{Name: "tester"}, Audit: &audit.Record{}}
		if _, err := req.Identify(c.engine); err != nil {
			t.Fatal(err)
		}
		_ = auditor.Audited(auditor.Matched(c.handlers.Write))(httptest.NewRecorder(), req) // refused or not
		var event struct{ ObjectRef audit.ObjectRef }
		if err := json.Unmarshal([]byte(line.String()), &event); err != nil || event.ObjectRef.Name != want || event.ObjectRef.Resource != "configmaps" {
			t.Errorf("%s: %v: %s", meta, err, line.String())
		}
	}
}
