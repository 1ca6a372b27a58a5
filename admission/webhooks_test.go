package admission_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
)

// remote is a webhook server over TLS, whose responses depend on the path. It records the
// calls.
type remote struct {
	*httptest.Server
	mu      sync.Mutex
	called  []string
	reviews map[string]map[string]any // the last one, by path
	answers map[string]func(request map[string]any) string
}

func serve(t *testing.T) *remote {
	t.Helper()
	s := &remote{reviews: map[string]map[string]any{}, answers: map[string]func(map[string]any) string{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		path := strings.Trim(r.URL.Path, "/")
		s.mu.Lock()
		s.called = append(s.called, path)
		s.reviews[path] = review
		answer := s.answers[path]
		s.mu.Unlock()
		request := review["request"].(map[string]any)
		response := `"allowed":true`
		if answer != nil {
			response = answer(request)
		}
		if response == "" {
			<-r.Context().Done() // it never responds
			return
		}
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"AdmissionReview","response":{"uid":%q,%s}}`, review["apiVersion"], request["uid"], response)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *remote) on(path, response string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = func(map[string]any) string { return response }
}

// calls returns the paths that were called since the last call of this function.
func (s *remote) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	called := s.called
	s.called = nil
	return called
}

func (s *remote) ca() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// hook returns a webhook for ConfigMaps, whose path is its name.
func (s *remote) hook(name string, more ...string) string {
	fields := append([]string{
		fmt.Sprintf("name: %q", name), `rules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: "*"}]`,
		"admissionReviewVersions: [v2, v1]", "sideEffects: None", fmt.Sprintf("clientConfig: {url: %q, caBundle: %s}", s.URL+"/"+name, s.ca()),
	}, more...)
	given := map[string]string{} // a later field replaces an earlier one
	for _, f := range fields {
		key, _, _ := strings.Cut(f, ":")
		given[key] = f
	}
	return "{" + strings.Join(slices.Collect(maps.Values(given)), ", ") + "}"
}

// configure stores webhooks under a kind: mutating or validating.
func configure(t testing.TB, c *fake.Cluster, kind, name string, hooks ...string) {
	t.Helper()
	c.Put(t, resource.GroupResource{Group: "admissionregistration.platform.io", Resource: kind + "webhookconfigurations"},
		fmt.Sprintf("{metadata: {name: %q}, webhooks: [%s]}", name, strings.Join(hooks, ", ")))
}

func patching(patch string) string {
	return `"allowed":true,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(patch)) + `"`
}

func TestWebhooksChangeObjects(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("first", patching(`[{"op":"add","path":"/data","value":{"n":9007199254740993}}]`)+`,"warnings":["careful"],"auditAnnotations":{"k":"v"}`)
	s.on("second", patching(`[{"op":"test","path":"/data/n","value":9007199254740993},{"op":"add","path":"/data/b","value":"x"}]`))
	configure(t, c, "mutating", "b", s.hook("second"))
	configure(t, c, "mutating", "a", s.hook("first", "reinvocationPolicy: IfNeeded"), s.hook("quiet", "reinvocationPolicy: Never"))
	a := started(t, c)
	got, err := a.Mutate(t.Context(), create("here"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"first", "quiet", "second", "first"}; !slices.Equal(s.calls(), want) {
		t.Errorf("the order is not %q", want)
	}
	// In the second round "first" replaces the data, and "second" is not reinvoked.
	if want := `{"data":{"n":9007199254740993},"metadata":{"name":"c"}}`; string(got.Object) != want {
		t.Errorf("%s, want %s", got.Object, want)
	}
	if len(got.Warnings) != 2 || got.Warnings[0] != "careful" || got.AuditAnnotations["first/k"] != "v" ||
		got.AuditAnnotations["mutation.webhook.admission.platform.io/round_0_index_1"] != `{"configuration":"a","webhook":"quiet","mutated":false}` {
		t.Errorf("%q, %q", got.Warnings, got.AuditAnnotations)
	}
	review := s.reviews["first"]
	request := review["request"].(map[string]any)
	if review["apiVersion"] != "admission.platform.io/v1" || request["name"] != "c" || request["namespace"] != "here" || request["operation"] != "CREATE" ||
		request["dryRun"] != false || request["oldObject"] != nil || request["kind"].(map[string]any)["kind"] != "ConfigMap" {
		t.Errorf("the review is %v", review)
	}
}

func TestWebhooksRefuse(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("one", `"allowed":false,"status":{"message":"not this one","code":422,"reason":"Invalid","details":{"causes":[{"field":"data"}]}}`)
	s.on("two", `"allowed":false,"status":{"message":"nor that one"}`)
	s.on("three", `"allowed":false`)
	configure(t, c, "validating", "all", s.hook("one"), s.hook("two"))
	configure(t, c, "mutating", "all", s.hook("three", `objectSelector: {matchLabels: {three: "yes"}}`))
	a := started(t, c)
	_, err := a.Validate(t.Context(), create("here"))
	refusal := services.AsStatus(err)
	if refusal == nil || refusal.Code != 422 || refusal.Reason != "Invalid" || refusal.Details.Causes[0].Field != "data" ||
		refusal.Message != `admission webhook "one" denied the request: not this one` {
		t.Errorf("%+v", refusal)
	}
	if called := s.calls(); len(called) != 2 {
		t.Errorf("called %q", called)
	}
	labelled := create("here")
	labelled.Object = []byte(`{"metadata":{"labels":{"three":"yes"}}}`)
	_, err = a.Mutate(t.Context(), labelled)
	if refusal = services.AsStatus(err); refusal == nil || refusal.Code != 400 || refusal.Message != `admission webhook "three" denied the request without explanation` {
		t.Errorf("%+v", refusal)
	}
}

func TestWebhooksThatFail(t *testing.T) {
	s := serve(t)
	s.on("silent", "")
	s.on("wrong", `"allowed":true,"uid":"another"`)
	s.on("untyped", `"allowed":true,"patch":"W10="`)
	s.on("missing-place", patching(`[{"op":"remove","path":"/nothing"}]`))
	dead := "clientConfig: {url: 'https://127.0.0.1:1/x'}"
	for name, fields := range map[string][]string{
		"silent": {"timeoutSeconds: 1"}, "wrong": nil, "untyped": nil, "unreachable": {dead},
		"distrusted": {fmt.Sprintf("clientConfig: {url: %q}", s.URL)}, "speechless": {"admissionReviewVersions: [v2]"},
		"nowhere": {"clientConfig: {service: {namespace: here, name: none}}"}, "misconfigured": {fmt.Sprintf("clientConfig: {url: %q, caBundle: YQ==}", s.URL)},
	} {
		for _, kind := range []string{"mutating", "validating"} {
			if kind == "validating" && name == "untyped" {
				continue
			}
			c := cluster(t)
			ask := func(a services.Admission) (services.AdmissionResponse, error) {
				if kind == "mutating" {
					return a.Mutate(t.Context(), create("here"))
				}
				return a.Validate(t.Context(), create("here"))
			}
			configure(t, c, kind, "c", s.hook(name, append(fields, "failurePolicy: Fail")...))
			_, err := ask(started(t, c))
			if refusal := services.AsStatus(err); refusal == nil || refusal.Code != 500 || !strings.Contains(refusal.Message, `failed calling webhook "`+name+`"`) {
				t.Errorf("%s %s: %v", kind, name, err)
			}
			configure(t, c, kind, "c", s.hook(name, append(fields, "failurePolicy: Ignore")...))
			got, err := ask(started(t, c))
			key := map[string]string{"mutating": "mutation", "validating": "validating"}[kind]
			if err != nil || got.AuditAnnotations["failed-open."+key+".webhook.admission.platform.io/round_0_index_0"] != name {
				t.Errorf("%s %s, ignored: %v, %v", kind, name, got, err)
			}
		}
	}
	c := cluster(t)
	configure(t, c, "mutating", "c", s.hook("missing-place", "failurePolicy: Ignore"))
	if _, err := started(t, c).Mutate(t.Context(), create("here")); services.AsStatus(err) == nil {
		t.Error("a patch that does not apply was ignored")
	}
}

func TestWebhooksInDryRuns(t *testing.T) {
	c, s := cluster(t), serve(t)
	configure(t, c, "validating", "a", s.hook("none"), s.hook("careful", "sideEffects: NoneOnDryRun", "admissionReviewVersions: [v1beta1]"))
	configure(t, c, "mutating", "a", s.hook("some", "sideEffects: Some", "failurePolicy: Ignore"))
	a := started(t, c)
	dry := create("here")
	dry.DryRun = true
	if _, err := a.Validate(t.Context(), dry); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", "careful"} {
		if s.reviews[name]["request"].(map[string]any)["dryRun"] != true {
			t.Errorf("%s was not called", name)
		}
	}
	if s.reviews["careful"]["apiVersion"] != "admission.platform.io/v1beta1" {
		t.Errorf("careful was called with version %v", s.reviews["careful"]["apiVersion"])
	}
	s.calls()
	if _, err := a.Mutate(t.Context(), dry); !services.IsReason(err, services.ReasonBadRequest) || len(s.calls()) > 0 {
		t.Errorf("a webhook with side effects: %v", err)
	}
	if _, err := a.Mutate(t.Context(), create("here")); err != nil || len(s.calls()) != 1 {
		t.Errorf("a real request: %v", err)
	}
}

// TestWebhooksExplainRefusals: warnings and audit annotations of the rejecting webhook, and
// of those called before it, are returned.
func TestWebhooksExplainRefusals(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("before", `"allowed":true,"warnings":["before"]`)
	s.on("refuses", `"allowed":false,"warnings":["why"],"auditAnnotations":{"k":"v"}`)
	for _, kind := range []string{"mutating", "validating"} {
		configure(t, c, kind, "all", s.hook("before"), s.hook("refuses"))
	}
	a := started(t, c)
	for kind, ask := range map[string]func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error){
		"mutating": a.Mutate, "validating": a.Validate} {
		got, err := ask(t.Context(), create("here"))
		if !services.IsReason(err, services.ReasonBadRequest) || !slices.Equal(got.Warnings, []string{"before", "why"}) ||
			got.AuditAnnotations["refuses/k"] != "v" || got.Object != nil {
			t.Errorf("%s: %v, %+v", kind, err, got)
		}
	}
}

// TestWebhooksSeeTheKindOfTheBody: the body of a subresource may be of another API group.
func TestWebhooksSeeTheKindOfTheBody(t *testing.T) {
	c, s := cluster(t), serve(t)
	configure(t, c, "validating", "a", s.hook("evictions", `rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [pods/eviction]}]`))
	_, err := started(t, c).Validate(t.Context(), services.AdmissionRequest{Operation: services.OperationCreate, Version: "v1", Resource: "pods",
		Subresource: "eviction", Kind: "Eviction", KindGroup: "policy", KindVersion: "v1beta1", Namespace: "here", Name: "p", Object: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	request := s.reviews["evictions"]["request"].(map[string]any)
	want := map[string]any{"group": "policy", "version": "v1beta1", "kind": "Eviction"}
	if !reflect.DeepEqual(request["kind"], want) || !reflect.DeepEqual(request["requestKind"], want) ||
		!reflect.DeepEqual(request["resource"], map[string]any{"group": "", "version": "v1", "resource": "pods"}) {
		t.Errorf("called for %v", request)
	}
}

// TestWebhookMatching compares rules and selectors with requests.
func TestWebhookMatching(t *testing.T) {
	c, s := cluster(t), serve(t)
	c.Put(t, namespaces, `{metadata: {name: here, labels: {env: prod}}, status: {phase: Active}}`)
	rule := func(fields string) string { return "rules: [{" + fields + "}]" }
	all := `operations: ["*"], apiGroups: ["*"], apiVersions: ["*"]`
	configure(t, c, "validating", "a",
		s.hook("everything", rule(all+`, resources: ["*/*"]`)),
		s.hook("no-subresources", rule(all+`, resources: ["*"]`)),
		s.hook("exec", rule(all+`, resources: ["pods/exec"]`)),
		s.hook("clusterwide", rule(all+`, resources: ["*"], scope: Cluster`)),
		s.hook("namespaced", rule(all+`, resources: ["*"], scope: Namespaced`)),
		s.hook("prod", rule(all+`, resources: ["*"]`), "namespaceSelector: {matchLabels: {env: prod}}"),
	)
	a := started(t, c)
	of := func(group, plural, subresource, namespace, object string) services.AdmissionRequest {
		return services.AdmissionRequest{Operation: services.OperationUpdate, Group: group, Version: "v1", Resource: plural, Subresource: subresource,
			Namespace: namespace, Name: "x", Object: []byte(object), OldObject: []byte(`{}`)}
	}
	for _, x := range []struct {
		request services.AdmissionRequest
		want    string
	}{
		{of("", "secrets", "", "here", `{}`), "everything namespaced no-subresources prod"},
		{of("", "secrets", "", "going", `{}`), "everything namespaced no-subresources"},
		{of("", "pods", "exec", "here", ``), "everything exec"},
		{of("", "nodes", "", "", `{}`), "clusterwide everything no-subresources prod"},
		{of("", "namespaces", "", "", `{"metadata":{"labels":{"env":"prod"}}}`), "clusterwide everything no-subresources prod"},
		{of("", "namespaces", "", "", `{"metadata":{}}`), "clusterwide everything no-subresources"},
		{of("networking.platform.io", "ingresses", "", "going", `{}`), "everything namespaced no-subresources"},
		{of("admissionregistration.platform.io", "validatingwebhookconfigurations", "", "", `{}`), ""},
	} {
		if _, err := a.Validate(t.Context(), x.request); err != nil {
			t.Error(err)
		}
		called := s.calls()
		slices.Sort(called)
		if got := strings.Join(called, " "); got != x.want {
			t.Errorf("%s/%s in %q: called %s, want %s", x.request.Resource, x.request.Subresource, x.request.Namespace, got, x.want)
		}
	}
}

// TestWebhooksBehindServices calls a webhook through a Service; its certificate must be for
// the Service's name.
func TestWebhooksBehindServices(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), "hook.here.svc")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	s.TLS.Certificates = []tls.Certificate{certificate}
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t)
	for name, spec := range map[string]string{"hook": "clusterIP: " + at.Hostname(), "other": "clusterIP: " + at.Hostname(),
		"headless": "clusterIP: None", "named": "type: ExternalName, externalName: " + at.Hostname()} {
		c.Put(t, core("services"), fmt.Sprintf(`{metadata: {name: %s, namespace: here}, spec: {%s, ports: [{port: %s}]}}`, name, spec, at.Port()))
	}
	for service, want := range map[string]string{"hook": "", "other": "not other.here.svc", "headless": `cannot route to service with ClusterIP "None"`, "named": "not named.here.svc"} {
		configure(t, c, "validating", "a", s.hook("x", fmt.Sprintf("clientConfig: {service: {namespace: here, name: %s, port: %s, path: /x}, caBundle: %s}",
			service, at.Port(), base64.StdEncoding.EncodeToString(ca))))
		_, err := started(t, c).Validate(t.Context(), create("here"))
		if want == "" && (err != nil || len(s.calls()) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", service, err, want)
		}
	}
}
