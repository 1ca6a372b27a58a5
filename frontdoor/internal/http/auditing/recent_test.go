package auditing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/auditing"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services"
)

// TestRecent: the last requests are kept with their users and codes, without queries, and
// neither their number nor their length is without bound.
func TestRecent(t *testing.T) {
	code := http.StatusOK
	recent := &auditing.Recent{}
	a := auditing.Auditor{Recent: recent, StatusOf: func(http.ResponseWriter, error) int { return code }}
	send := func(path, user string, of *catalogue.Type) {
		r := &request.Request{Request: httptest.NewRequest("GET", path, nil), Verb: "get", Type: of}
		_ = a.Audited(func(_ http.ResponseWriter, r *request.Request) error {
			r.Caller.Name, r.User.Name = user, user
			if user == "admin" {
				r.User, r.Impersonated = services.UserInfo{Name: "other"}, true
			}
			return nil
		})(httptest.NewRecorder(), r)
	}
	for i := range 5000 {
		send(fmt.Sprintf("/api/%d?token=secret", i), "u", nil)
	}
	send("/healthz", "", nil)
	send("/"+strings.Repeat("x", 100_000), "admin", &catalogue.Type{Deprecation: &kinds.Deprecation{}})
	code = http.StatusUnauthorized
	send("/api", "", nil)

	ask := func(query string) ([]map[string]any, error) {
		w := httptest.NewRecorder()
		err := recent.Serve(w, httptest.NewRequest("GET", "/debug/portico/v1/requests"+query, nil))
		var answer struct{ Requests []map[string]any }
		if err == nil {
			err = json.Unmarshal(w.Body.Bytes(), &answer)
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Error("the answer has a query")
		}
		return answer.Requests, err
	}
	got, err := ask("")
	if err != nil || len(got) != 4096 {
		t.Fatalf("%d requests, %v, want the last 4096", len(got), err)
	}
	if got[0]["code"] != 401.0 || got[0]["user"] != nil {
		t.Errorf("the refused request: %v", got[0])
	}
	if got[1]["user"] != "admin" || got[1]["impersonatedUser"] != "other" || got[1]["deprecated"] != true || len(got[1]["path"].(string)) != 256 {
		t.Errorf("the long request: %v", got[1])
	}
	if got[2]["path"] != "/api/4999" || got[4095]["path"] != "/api/906" {
		t.Errorf("the order: %v, %v", got[2], got[4095])
	}
	if got, err := ask("?limit=2"); len(got) != 2 || err != nil {
		t.Errorf("limit=2: %d requests, %v", len(got), err)
	}
	for _, limit := range []string{"0", "-1", "x"} {
		if _, err := ask("?limit=" + limit); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("limit=%s: %v", limit, err)
		}
	}
}

func BenchmarkRecent(b *testing.B) {
	a := auditing.Auditor{Recent: &auditing.Recent{}, StatusOf: func(http.ResponseWriter, error) int { return 200 }}
	r := &request.Request{Request: httptest.NewRequest("GET", "/api/v1/namespaces/default/pods/web", nil), Verb: "get"}
	handle := a.Audited(func(_ http.ResponseWriter, r *request.Request) error { r.Caller.Name = "u"; return nil })
	b.ReportAllocs()
	w := httptest.NewRecorder()
	for b.Loop() {
		_ = handle(w, r)
	}
}
