package writes

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/tree"
)

// TestPatchedMetadata checks patches and updates that change the identity of an object.
func TestPatchedMetadata(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.must("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
	for body, want := range map[string]struct {
		code  int32
		field string
	}{
		`{"metadata":null}`:                                         {400, ""},
		`{"metadata":1}`:                                            {422, "patch"},
		`{"metadata":{"name":"b"}}`:                                 {400, ""},
		`{"metadata":{"namespace":"b"}}`:                            {400, ""},
		`{"metadata":{"uid":"b"}}`:                                  {422, "metadata.uid"},
		`{"metadata":{"resourceVersion":"9"}}`:                      {409, ""},
		`{"metadata":{"resourceVersion":"x"}}`:                      {400, ""},
		`{"metadata":{"labels":{"a":1}}}`:                           {422, "patch"},
		`{"kind":"Secret"}`:                                         {422, "patch"},
		`{"apiVersion":"v2"}`:                                       {422, "patch"},
		`{"metadata":{"generateName":"a-"}}`:                        {},
		`{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}}`: {},
		`{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"}}`: {422, "metadata.deletionTimestamp"},
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","uid":"u"}]}}`: {422, "metadata.ownerReferences.name"},
		`{"kind":null}`: {},
	} {
		_, err := c.do("PATCH", configMaps+"/a", body)
		var s *services.Status
		switch {
		case want.code == 0 && err != nil:
			t.Errorf("%s: %v", body, err)
		case want.code == 0:
		case !errors.As(err, &s) || s.Code != want.code:
			t.Errorf("%s: got %v, want code %d", body, err, want.code)
		case want.field != "" && s.Details.Causes[0].Field != want.field:
			t.Errorf("%s: got %v, want %s named", body, err, want.field)
		}
	}
}

// TestReplacedFieldsAreChecked: fields of a new object that the service replaces have to be
// of the right type nevertheless.
func TestReplacedFieldsAreChecked(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	for _, x := range []struct{ metadata, status, refusal string }{
		{`"creationTimestamp":"yesterday"`, `{}`, "metadata.creationTimestamp"},
		{`"creationTimestamp":5`, `{}`, "metadata.creationTimestamp"},
		{`"deletionTimestamp":"soon"`, `{}`, "metadata.deletionTimestamp"},
		{`"deletionGracePeriodSeconds":"x"`, `{}`, "metadata.deletionGracePeriodSeconds"},
		{`"selfLink":1`, `{}`, "metadata.selfLink"},
		{`"labels":{}`, `{"replicas":"many"}`, "status.replicas"},
		{`"labels":{}`, `"well"`, "status"},
		{`"creationTimestamp":"2020-01-01T00:00:00Z","clusterName":"c"`, `{"replicas":3}`, ""},
	} {
		made, err := c.do("POST", "/api/v1/namespaces/default/replicationcontrollers", `{"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"a",`+x.metadata+`},
			"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":`+x.status+`}`)
		if x.refusal == "" {
			if err != nil || tree.Text(made, "metadata", "clusterName") != "" || tree.Text(made, "metadata", "creationTimestamp") < "2021" || tree.Number(made, "status", "replicas") != 0 {
				t.Errorf("%s: %v, %v", x.metadata, made, err)
			}
		} else if !services.IsReason(err, services.ReasonBadRequest) || !strings.Contains(err.Error(), x.refusal+":") {
			t.Errorf("%s %s: %v", x.metadata, x.status, err)
		}
	}
}

// TestOwnersAreNamedOnce: duplicate ownerReferences are dropped.
func TestOwnersAreNamedOnce(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	const owner = `{"apiVersion":"v1","kind":"X","name":"x","uid":"u"}`
	created := c.must("POST", configMaps, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[%s,%s]}}`, owner, owner))
	if kept, _ := created["metadata"].(map[string]any)["ownerReferences"].([]any); len(kept) != 1 {
		t.Errorf("kept %v", kept)
	}
}

// TestMediaTypesAreCheckedFirst: neither the parameters nor whether the object exists matter if the
// media type of the request or that of its response does not fit.
func TestMediaTypesAreCheckedFirst(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	for _, x := range []struct {
		method, path, contentType, accept string
		code                              int32
	}{
		{"POST", configMaps + "?dryRun=x", "text/plain", "", 415}, {"PUT", configMaps + "/missing?fieldValidation=x", "text/plain", "", 415},
		{"PATCH", configMaps + "/missing?dryRun=x", "application/json", "", 415}, {"PATCH", configMaps + "/missing?dryRun=x", "application/json", "text/html", 415},
		{"POST", configMaps + "?dryRun=x", "text/plain", "text/html", 406}, {"PATCH", configMaps + "/missing?dryRun=x", "application/merge-patch+json", "text/html", 406},
		{"POST", configMaps + "?dryRun=x", "application/json", "", 422}, {"PATCH", configMaps + "/missing?dryRun=x", "application/merge-patch+json", "", 422},
	} {
		r := httptest.NewRequestWithContext(t.Context(), x.method, x.path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", x.contentType)
		if x.accept != "" {
			r.Header.Set("Accept", x.accept)
		}
		req := &request.Request{Request: r, User: services.UserInfo{Name: "tester"}, Audit: &audit.Record{}}
		if _, err := req.Identify(c.engine); err != nil {
			t.Fatal(err)
		}
		if s := services.AsStatus(c.handlers.Write(httptest.NewRecorder(), req)); s == nil || s.Code != x.code {
			t.Errorf("%+v: %v", x, s)
		}
	}
}
