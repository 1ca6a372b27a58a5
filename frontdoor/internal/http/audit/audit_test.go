package audit_test

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/services"
)

// TestSources: addresses are logged without ports, those of the request's headers first.
func TestSources(t *testing.T) {
	for forwarded, want := range map[string][]string{
		"":                                  {"192.0.2.1"},
		"198.51.100.7, 2001:db8::1":         {"198.51.100.7", "2001:db8::1", "192.0.2.1"},
		strings.Repeat("203.0.113.9,", 100): append(slices.Repeat([]string{"203.0.113.9"}, 15), "192.0.2.1"),
	} {
		var line strings.Builder
		r := httptest.NewRequest("GET", "/api", nil)
		r.RemoteAddr = "192.0.2.1:4711"
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		audit.NewLog(&line, "audit/v1").Write(audit.Outcome{Stage: audit.ResponseComplete, Record: &audit.Record{}, Request: r})
		var event struct{ SourceIPs []string }
		if err := json.Unmarshal([]byte(line.String()), &event); err != nil || !slices.Equal(event.SourceIPs, want) {
			t.Errorf("%.40q: got %q, want %q (%v)", forwarded, event.SourceIPs, want, err)
		}
	}
}

// TestDecisionsAreAnnotated: the record has the decision of authz and its reason, also if it is
// empty, and only then the rule or the nearest miss.
func TestDecisionsAreAnnotated(t *testing.T) {
	const group = "authorization.example"
	for _, c := range []struct {
		decision services.Decision
		want     map[string]string
	}{
		{services.Decision{Allowed: true, Reason: "r", Rule: "verbs"}, map[string]string{group + "/decision": "allow", group + "/reason": "r", "authorization.portico.dev/rule": "verbs", "a": "b"}},
		{services.Decision{Miss: "almost"}, map[string]string{group + "/decision": "forbid", group + "/reason": "", "authorization.portico.dev/nearest-miss": "almost", "a": "b"}},
	} {
		var r audit.Record
		r.Annotate("a", "b")
		r.Decided(group, c.decision)
		if got := r.Annotations(); !maps.Equal(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
}

// TestAdmissionForgesNoAnnotations: webhooks and policies choose their names, which begin the keys of
// their annotations.
func TestAdmissionForgesNoAnnotations(t *testing.T) {
	const group = "authorization.example"
	var r audit.Record
	r.Annotate("example/before", "ours")
	for key, value := range map[string]string{group + "/decision": "forbid", group + "/reason": "forged", group + "/other": "forged",
		"authorization.portico.dev/nearest-miss": "forged", "example/before": "forged", "example/after": "forged", "hook.example/a": "first"} {
		r.Note(key, value)
	}
	r.Note("hook.example/a", "second")
	r.Annotate("example/after", "ours")
	r.Decided(group, services.Decision{Allowed: true, Reason: "r", Rule: "verbs"})
	want := map[string]string{group + "/decision": "allow", group + "/reason": "r", "authorization.portico.dev/rule": "verbs",
		"example/before": "ours", "example/after": "ours", "hook.example/a": "first"}
	if got := r.Annotations(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestLongRequests: what a client without any right can make a line of is bounded. A longer line than
// a file of the log may be would be left out of it.
func TestLongRequests(t *testing.T) {
	long := strings.Repeat("<", 900<<10) // each of which JSON escapes as six bytes
	var line strings.Builder
	r := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/"+long+"?labelSelector="+long, nil)
	r.Header.Set("User-Agent", long)
	audit.NewLog(&line, "audit/v1").Write(audit.Outcome{Stage: audit.ResponseComplete, Record: &audit.Record{}, Request: r,
		Object: &audit.ObjectRef{Resource: "pods", Name: long, Namespace: "a", APIVersion: "v1"}})
	if line.Len() > 600<<10 {
		t.Errorf("the line has %d bytes", line.Len())
	}
	var event struct {
		RequestURI string
		ObjectRef  struct{ Namespace, Name string }
	}
	if err := json.Unmarshal([]byte(line.String()), &event); err != nil || !strings.HasPrefix(event.RequestURI, "/api/v1/namespaces/a/pods/%3C%3C") ||
		!strings.HasSuffix(event.RequestURI, "...TRUNCATED") || event.ObjectRef.Namespace != "a" || !strings.HasPrefix(event.ObjectRef.Name, "<<<<") {
		t.Errorf("%.300s, error %v", line.String(), err)
	}
}
