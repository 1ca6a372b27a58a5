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
		"no policy, panic": {"", panics, nil},
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
