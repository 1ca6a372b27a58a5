package auditing_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/auditing"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// stages returns the stages and codes of the events of one request to /version.
func stages(t *testing.T, policy string, handle request.Handler) (got []string) {
	t.Helper()
	var lines strings.Builder
	a := auditing.Auditor{Log: audit.NewLog(&lines, "audit/v1"), StatusOf: func(_ http.ResponseWriter, err error) int {
		if err != nil {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}}
	if policy != "" {
		p, err := audit.ParsePolicy([]byte("apiVersion: audit/v1\nkind: Policy\n"+policy), "audit/v1")
		if err != nil {
			t.Fatal(err)
		}
		a.Policy = func() *audit.Policy { return p }
	}
	func() {
		defer func() { _ = recover() }()
		r := &request.Request{Request: httptest.NewRequest("GET", "/version", nil), Verb: "get"}
		_ = a.Audited(a.Matched(handle))(httptest.NewRecorder(), r)
	}()
	for line := range strings.Lines(lines.String()) {
		var e struct {
			Stage          string
			ResponseStatus struct{ Code json.Number }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Stage+e.ResponseStatus.Code.String())
	}
	return got
}

// TestStages: the stages of requests that end well, with an error, or in a panic.
func TestStages(t *testing.T) {
	fine := func(http.ResponseWriter, *request.Request) error { return nil }
	fails := func(http.ResponseWriter, *request.Request) error { return errors.New("failed") }
	panics := func(http.ResponseWriter, *request.Request) error { panic("failed") }
	for name, c := range map[string]struct {
		policy string
		handle request.Handler
		want   []string
	}{
		"no policy":        {"", fine, []string{"ResponseComplete200"}},
		"no policy, error": {"", fails, []string{"ResponseComplete500"}},
		"no policy, panic": {"", panics, []string{"Panic500"}},
		"policy":           {"rules: [{level: RequestResponse}]", fine, []string{"RequestReceived", "ResponseComplete200"}},
		"policy, error":    {"rules: [{level: Metadata}]", fails, []string{"RequestReceived", "ResponseComplete500"}},
		"policy, panic":    {"rules: [{level: Metadata}]", panics, []string{"RequestReceived", "Panic500"}},
		"level None":       {"rules: [{level: None}]", panics, nil},
	} {
		if got := stages(t, c.policy, c.handle); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// failing is a file that cannot be written.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestStrict: a request whose first event cannot be written is refused in mode blocking-strict; the other
// events do not matter.
func TestStrict(t *testing.T) {
	for policy, want := range map[string]bool{"": true, "rules: [{level: Metadata, omitStages: [RequestReceived]}]": true, "rules: [{level: Metadata}]": false} {
		a := auditing.Auditor{Log: audit.NewLog(failing{}, "audit/v1"), StatusOf: func(http.ResponseWriter, error) int { return http.StatusOK }}
		if policy != "" {
			p, err := audit.ParsePolicy([]byte("apiVersion: audit/v1\nkind: Policy\n"+policy), "audit/v1")
			if err != nil {
				t.Fatal(err)
			}
			a.Policy = func() *audit.Policy { return p }
		}
		served := false
		handle := func(http.ResponseWriter, *request.Request) error { served = true; return nil }
		r := &request.Request{Request: httptest.NewRequest("GET", "/version", nil), Verb: "get"}
		err := a.Audited(a.Matched(handle))(httptest.NewRecorder(), r)
		if served != want || (err == nil) != want {
			t.Errorf("%q: served %v, %v", policy, served, err)
		}
	}
}

// TestImpersonation: the event names the user in whose name a caller asks, also if only the groups
// differ.
func TestImpersonation(t *testing.T) {
	caller := services.UserInfo{Name: "jane", Groups: []string{"dev"}}
	for _, c := range []struct {
		user         services.UserInfo
		impersonated bool
		constraint   string
		want         string
	}{
		{caller, false, "", `{"username":"jane","groups":["dev"]} null null`},
		{services.UserInfo{Name: "bob"}, true, "", `{"username":"jane","groups":["dev"]} {"username":"bob"} null`},
		{services.UserInfo{Name: "bob"}, true, "impersonate:user-info", `{"username":"jane","groups":["dev"]} {"username":"bob"} {"impersonationConstraint":"impersonate:user-info"}`},
		{services.UserInfo{Name: "jane", Groups: []string{"system:masters"}}, true, "", `{"username":"jane","groups":["dev"]} {"username":"jane","groups":["system:masters"]} null`},
	} {
		var line strings.Builder
		a := auditing.Auditor{Log: audit.NewLog(&line, "audit/v1"), Recent: &auditing.Recent{}, StatusOf: func(http.ResponseWriter, error) int { return http.StatusOK }}
		r := &request.Request{Request: httptest.NewRequest("GET", "/version", nil), Verb: "get", Caller: caller, User: c.user, Impersonated: c.impersonated, Constraint: c.constraint}
		if err := a.Audited(func(http.ResponseWriter, *request.Request) error { return nil })(httptest.NewRecorder(), r); err != nil {
			t.Fatal(err)
		}
		null := json.RawMessage("null")
		e := struct{ User, ImpersonatedUser, AuthenticationMetadata json.RawMessage }{null, null, null}
		if err := json.Unmarshal([]byte(line.String()), &e); err != nil {
			t.Fatal(err)
		}
		if got := string(e.User) + " " + string(e.ImpersonatedUser) + " " + string(e.AuthenticationMetadata); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		w := httptest.NewRecorder()
		if err := a.Recent.Serve(w, httptest.NewRequest("GET", "/", nil)); err != nil || strings.Contains(w.Body.String(), "impersonatedUser") != c.impersonated {
			t.Errorf("recent requests: %s, error %v", w.Body, err)
		}
	}
}
