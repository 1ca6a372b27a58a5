package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/auditchain"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// auditPolicy has a rule of each level.
const auditPolicy = `apiVersion: audit.platform.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["/readyz*", /metrics]}
- {level: None, users: ["system:portico:lifecycle"]} # it makes ConfigMaps of its own
- {level: None, verbs: [list], resources: [{group: "", resources: [configmaps]}]}
- {level: Metadata, resources: [{group: "", resources: [secrets, serviceaccounts/token]}, {group: authentication.platform.io}]}
- {level: RequestResponse, omitManagedFields: true, resources: [{group: "", resources: [configmaps]}], namespaces: [default], omitStages: []}
- {level: Request, resources: [{group: "", resources: [namespaces]}]}
- {level: Metadata, resources: [{group: batch}]}
- {level: Metadata, nonResourceURLs: [/version]}
`

// auditEvent is what the test reads of a line.
type auditEvent struct {
	APIVersion, Level, Stage, Verb, RequestURI string
	ObjectRef                                  struct{ Resource, Name, Subresource string }
	ResponseStatus                             struct {
		Code            int
		Reason, Message string
	}
	RequestObject, ResponseObject struct {
		Kind     string
		Data     map[string]string
		Metadata map[string]any
	}
	Annotations map[string]string
}

// auditFile is the log of a running suite.
type auditFile struct {
	*cluster.Cluster
	path string
}

// find returns the event of a stage and request, which may not be written yet. Controllers
// make requests too: one that creates is found by the name of its object.
func (f auditFile) find(t *testing.T, stage, verb, resource, name string) auditEvent {
	t.Helper()
	return f.first(t, "an event "+stage+" of "+verb+" "+resource+" "+name, func(e auditEvent) bool {
		return e.Stage == stage && e.Verb == verb && e.ObjectRef.Resource == resource && (e.ObjectRef.Name == name || e.RequestObject.Metadata["name"] == name)
	})
}

// first waits for an event and returns the first one.
func (f auditFile) first(t *testing.T, what string, wanted func(auditEvent) bool) (found auditEvent) {
	t.Helper()
	eventually(t, "there is "+what, func() bool {
		events := f.events(t)
		i := slices.IndexFunc(events, wanted)
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	})
	return found
}

// events returns all events so far.
func (f auditFile) events(t *testing.T) (events []auditEvent) {
	t.Helper()
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, line := range lines[:len(lines)-1] {
		var e auditEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// TestAuditPolicy: the levels of a policy decide what the log of a running suite contains.
func TestAuditPolicy(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts the suite")
	}
	dir := t.TempDir()
	policy, path := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAllInOne(t, vocabulary.Platform(), "--audit-policy-file="+policy, "--audit-log-path="+path)
	f := auditFile{a.Cluster, path}
	f.bodies(t)
	f.credentials(t)
	f.watches(t)
	f.deprecated(t)
	f.refused(t)
	f.unlogged(t)
	f.reloaded(t, policy)
	f.whole(t)
}

// whole verifies the chain of the log, and that one line less is found.
func (f auditFile) whole(t *testing.T) {
	if r, err := auditchain.Verify(nil, f.path); err != nil || r.Lines == 0 || len(r.Problems) > 0 {
		t.Errorf("the log of %d lines has the problems %v, error %v", r.Lines, r.Problems, err)
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	edited := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(edited, []byte(strings.Join(append(lines[:1:1], lines[2:]...), "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := auditchain.Verify(nil, edited); err != nil || len(r.Problems) != 1 || r.Problems[0].Line != 2 {
		t.Errorf("without its second line the log has the problems %v, error %v", r.Problems, err)
	}
}

// bodies makes requests at the levels with bodies.
func (f auditFile) bodies(t *testing.T) {
	const maps = "/api/v1/namespaces/default/configmaps"
	yaml := post(maps, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {k: v}\n")
	yaml.Type, yaml.Header = "application/yaml", http.Header{"Accept": {"application/yaml"}}
	ok(t, f.Cluster, yaml)
	e := f.find(t, "ResponseComplete", "create", "configmaps", "m")
	if e.Level != "RequestResponse" || e.RequestObject.Data["k"] != "v" || e.ResponseObject.Data["k"] != "v" || e.ResponseObject.Metadata["uid"] == nil ||
		e.ResponseObject.Metadata["managedFields"] != nil || e.ResponseStatus.Code != http.StatusOK {
		t.Errorf("create: %+v", e)
	}
	f.Ask(t, cluster.Request{Path: maps + "/none"})
	if e := f.find(t, "ResponseComplete", "get", "configmaps", "none"); e.ResponseObject.Kind != "Status" || e.ResponseStatus.Reason != "NotFound" {
		t.Errorf("get without an object: %+v", e)
	}
	ok(t, f.Cluster, post(maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"k":"`+strings.Repeat("v", 300<<10)+`"}}`))
	ok(t, f.Cluster, cluster.Request{Path: maps + "/large"})
	if e := f.find(t, "ResponseComplete", "get", "configmaps", "large"); e.ResponseObject.Kind != "" || e.Annotations["audit.platform.io/truncated"] != "true" {
		t.Errorf("large: %.300v", e)
	}
	ok(t, f.Cluster, post("/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"audited"}}`))
	if e := f.find(t, "ResponseComplete", "create", "namespaces", "audited"); e.Level != "Request" || e.RequestObject.Metadata["name"] != "audited" || e.ResponseObject.Kind != "" {
		t.Errorf("level Request: %+v", e)
	}
}

// credentials makes requests whose bodies must not be in the log, also in errors.
func (f auditFile) credentials(t *testing.T) {
	const secret = "hunter2hunter2"
	ok(t, f.Cluster, post("/api/v1/namespaces/default/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"p":"`+secret+`"}}`))
	f.Ask(t, post("/api/v1/namespaces/default/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bad"},"type":["`+secret+`"]}`))
	f.Ask(t, post("/api/v1/namespaces/default/secrets", secret))
	ok(t, f.Cluster, cluster.Request{Path: "/api/v1/namespaces/default/secrets/s"})
	ok(t, f.Cluster, post("/apis/authentication.platform.io/v1/tokenreviews",
		`{"apiVersion":"authentication.platform.io/v1","kind":"TokenReview","spec":{"token":"`+secret+`"}}`))
	ok(t, f.Cluster, post("/api/v1/namespaces/default/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`))
	issued := ok(t, f.Cluster, post("/api/v1/namespaces/default/serviceaccounts/robot/token", `{"apiVersion":"authentication.platform.io/v1","kind":"TokenRequest","spec":{}}`))
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(issued.Body), &request); err != nil || request.Status.Token == "" {
		t.Fatalf("no token in %.200s (%v)", issued.Body, err)
	}
	f.find(t, "ResponseComplete", "create", "serviceaccounts", "robot")
	if e := f.find(t, "ResponseComplete", "get", "secrets", "s"); e.Level != "Metadata" || e.ResponseObject.Kind != "" {
		t.Errorf("get of a secret: %+v", e)
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, confidential := range []string{secret, "aHVudGVyMmh1bnRlcjI", request.Status.Token} {
		if strings.Contains(string(text), confidential) {
			t.Errorf("the log contains %.20s", confidential)
		}
	}
}

// refused makes requests that are refused before it is known who makes them.
func (f auditFile) refused(t *testing.T) {
	for _, c := range []struct {
		method, query, verb string
		code                int
	}{{http.MethodGet, "?timeout=soon", "get", http.StatusBadRequest}, {http.MethodPost, "?name=%ff", "post", http.StatusBadRequest}, {"BREW", "", "other", http.StatusMethodNotAllowed}} {
		if a := f.Ask(t, cluster.Request{Method: c.method, Path: "/version" + c.query}); a.Code != c.code {
			t.Errorf("%s %s: %d %s", c.method, c.query, a.Code, a.Body)
		}
		f.first(t, "an event of the refused "+c.verb, func(e auditEvent) bool {
			return e.RequestURI == "/version"+c.query && e.Verb == c.verb && e.ResponseStatus.Code == c.code && e.Stage == "ResponseComplete"
		})
	}
}

// deprecated asks for a version that a later release removes: the event says so.
func (f auditFile) deprecated(t *testing.T) {
	ok(t, f.Cluster, cluster.Request{Path: "/apis/batch/v1beta1/namespaces/default/cronjobs/"})
	e := f.first(t, "an event of a deprecated version", func(e auditEvent) bool {
		return strings.HasPrefix(e.RequestURI, "/apis/batch/v1beta1/namespaces/default/")
	})
	if e.Annotations["platform.io/deprecated"] != "true" || e.Annotations["platform.io/removed-release"] != "1.25" {
		t.Errorf("the annotations are %v", e.Annotations)
	}
}

// watches starts a watch: its beginning is logged while it is open.
func (f auditFile) watches(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	stream, err := f.Send(ctx, cluster.Request{Path: "/api/v1/namespaces/default/configmaps?watch=true"})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if e := f.find(t, "ResponseStarted", "watch", "configmaps", ""); e.ResponseStatus.Code != http.StatusOK {
		t.Errorf("%+v", e)
	}
}

// unlogged makes requests of level None.
func (f auditFile) unlogged(t *testing.T) {
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default/configmaps", "/api", "/version"} {
		ok(t, f.Cluster, cluster.Request{Path: path})
	}
	eventually(t, "/version is logged", func() bool {
		return slices.ContainsFunc(f.events(t), func(e auditEvent) bool { return e.RequestURI == "/version" })
	})
	for _, e := range f.events(t) {
		if e.Stage == "RequestReceived" || e.Verb == "list" && e.ObjectRef.Resource == "configmaps" || e.RequestURI == "/api" || strings.HasPrefix(e.RequestURI, "/readyz") {
			t.Errorf("logged: %+v", e)
		}
	}
}

// reloaded replaces the policy, first by one that is refused.
func (f auditFile) reloaded(t *testing.T, policy string) {
	write := func(text string) {
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kind: Policy")
	eventually(t, "the failure is counted", func() bool {
		return strings.Contains(f.Ask(t, cluster.Request{Path: "/metrics"}).Body, "apiserver_audit_policy_reload_failures_total 1")
	})
	ok(t, f.Cluster, post("/api/v1/namespaces/default/configmaps?dryRun=All", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"}}`))
	write("{apiVersion: audit.platform.io/v1, kind: Policy, rules: [{level: Metadata, verbs: [get]}]}")
	eventually(t, "the new policy logs other requests", func() bool {
		ok(t, f.Cluster, cluster.Request{Path: "/api"})
		return slices.ContainsFunc(f.events(t), func(e auditEvent) bool { return e.RequestURI == "/api" })
	})
	if e := f.first(t, "RequestReceived of /api", func(e auditEvent) bool { return e.Stage == "RequestReceived" && e.RequestURI == "/api" }); e.ResponseStatus.Code != 0 {
		t.Errorf("%+v", e)
	}
}
