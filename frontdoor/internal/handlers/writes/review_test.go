package writes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

// recording is an admission that records the requests, and responds with an object if it
// has one.
type recording struct {
	mu       sync.Mutex
	requests []services.AdmissionRequest
	answer   []byte
}

func (a *recording) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	return services.AdmissionResponse{Object: a.answer}, nil
}

func (a *recording) Validate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	return services.AdmissionResponse{}, nil
}

const webDeployment = `{"metadata":{"name":"a"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},
	"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// TestScaleIsReviewed: admission reviews the Scale that the client sends, and may
// change it.
func TestScaleIsReviewed(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	path := "/apis/apps/v1/namespaces/default/deployments"
	c.must("POST", path, webDeployment)
	a := &recording{}
	c.handlers.Admission = a
	for range 2 { // the second time nothing changes
		c.must("PATCH", path+"/a/scale", `{"spec":{"replicas":5}}`)
	}
	for i, r := range a.requests {
		var object, old struct {
			Kind, APIVersion string
			Metadata         struct{ Name string }
			Spec             map[string]any
		}
		if err := json.Unmarshal(r.Object, &object); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(r.OldObject, &old); err != nil {
			t.Fatal(err)
		}
		before := map[bool]float64{true: 2, false: 5}[i < 2]
		if r.Kind != "Scale" || r.KindGroup != "autoscaling" || r.Resource != "deployments" || r.Subresource != "scale" ||
			object.Kind != "Scale" || object.APIVersion != "autoscaling/v1" || object.Metadata.Name != "a" || len(object.Spec) != 1 ||
			object.Spec["replicas"] != 5.0 || old.Kind != "Scale" || old.Spec["replicas"] != before {
			t.Errorf("reviewed %s of %s: %s, before %s", r.Kind, r.KindGroup, r.Object, r.OldObject)
		}
	}
	if len(a.requests) != 4 {
		t.Errorf("admission was called %d times", len(a.requests))
	}
	a.answer = []byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"default"},"spec":{"replicas":3}}`)
	c.must("PATCH", path+"/a/scale", `{"spec":{"replicas":9}}`)
	if n, _, _ := unstructured.NestedFieldNoCopy(c.must("PATCH", path+"/a/scale", `{}`), "spec", "replicas"); n != 3.0 {
		t.Errorf("%v replicas, admission made it 3", n)
	}
	a.answer = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`)
	if _, err := c.do("PATCH", path+"/a/scale", `{"spec":{"replicas":9}}`); err == nil || services.AsStatus(err).Code != 500 {
		t.Errorf("admission answers with another kind: %v", err)
	}
}

// TestCollectionsNameNoObject: a request that deletes a collection has no name, and the
// old object is that of each deletion.
func TestCollectionsNameNoObject(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	for _, name := range []string{"a", "b"} {
		c.must("POST", configMaps, configMap(name, ""))
	}
	a := &recording{}
	c.handlers.Admission = a
	c.must("DELETE", configMaps, "")
	var names []string
	for _, r := range a.requests {
		var old struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(r.OldObject, &old); err != nil {
			t.Fatal(err)
		}
		if r.Name != "" || r.Namespace != "default" || r.Operation != services.OperationDelete || r.Object != nil {
			t.Errorf("asked about %q: %s", r.Name, r.Object)
		}
		names = append(names, old.Metadata.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "a", "b", "b"}) {
		t.Errorf("asked about %q", names)
	}
}

var _ services.Admission = (*recording)(nil)

// TestFindingsAfterMutation: what the decoder finds in a body is reported once, also when
// admission changes the object.
func TestFindingsAfterMutation(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.handlers.Admission = &recording{answer: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"k":"changed"}}`)}
	body := `{"metadata":{"name":"a"},"data":{"k":"v"},"data":{"k":"v"},"other":1,"other":2}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/namespaces/default/configmaps?fieldValidation=Warn", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	req := &request.Request{Request: r, User: services.UserInfo{Name: "tester"}, Audit: &audit.Record{}}
	if _, err := req.Identify(c.engine); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := c.handlers.Write(w, req); err != nil {
		t.Fatal(err)
	}
	want := []string{`299 - "duplicate field \"data\""`, `299 - "unknown field \"other\""`}
	if got := w.Header()["Warning"]; !slices.Equal(got, want) || !strings.Contains(w.Body.String(), `"changed"`) {
		t.Errorf("got %q, want %q: %s", got, want, w.Body)
	}
}
