package admission_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

// varying are the parts of messages that differ from run to run.
var varying = regexp.MustCompile(`127\.0\.0\.1:[0-9]{4,}|[0-9a-f]{8}-[0-9a-f-]{27}`)

// TestWebhookErrors: the messages of failed calls are those of kube-apiserver. At release 1.36 they name the
// phase that failed.
func TestWebhookErrors(t *testing.T) {
	s := serve(t)
	s.on("silent", "")
	s.on("wrong", `"allowed":true,"uid":"another"`)
	s.on("untyped", `"allowed":true,"patch":"W10="`)
	s.on("empty", `"allowed":true,"patchType":"JSONPatch"`)
	s.on("other-type", `"allowed":true,"patch":"W10=","patchType":"Merge"`)
	s.on("no-patch", patching(`{}`))
	s.on("patches", patching(`[]`))
	failing := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a secret", http.StatusBadGateway) }))
	defer failing.Close()
	const call, invalid = "failed to call webhook: ", "received invalid webhook response: "
	for _, x := range []struct{ kind, name, fields, phase, message string }{
		{"validating", "silent", "timeoutSeconds: 1", call, `Post "https://ADDRESS/silent?timeout=1s": context deadline exceeded`},
		{"validating", "unreachable", "clientConfig: {url: 'https://127.0.0.1:1/x'}", call, `Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused`},
		{"validating", "distrusted", "clientConfig: {url: '" + s.URL + "'}", call, `Post "https://ADDRESS/?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`},
		{"validating", "failing", "clientConfig: {url: '" + failing.URL + "', caBundle: " + s.ca() + "}", call, `an error on the server ("502 Bad Gateway") has prevented the request from succeeding`},
		{"validating", "nowhere", "clientConfig: {service: {namespace: here, name: none}}", call, `Post "https://none.here.svc:443?timeout=10s": service "none" not found`},
		{"validating", "wrong", "", invalid, `expected response.uid="UID", got "another"`},
		{"validating", "untyped", "", invalid, `validating webhook may not return response.patch`},
		{"mutating", "untyped", "", invalid, `webhook returned response.patch but not response.patchType`},
		{"mutating", "empty", "", invalid, `webhook returned response.patchType but not response.patch`},
		{"mutating", "other-type", "", invalid, `unsupported patch type "Merge"`},
		{"mutating", "speechless", "admissionReviewVersions: [v2]", "could not create admission objects: ", "webhook does not accept known AdmissionReview versions (v1, v1beta1)"},
	} {
		c := cluster(t)
		fields := []string{"failurePolicy: Fail"}
		if x.fields != "" {
			fields = append(fields, x.fields)
		}
		configure(t, c, x.kind, "c", s.hook(x.name, fields...))
		for release, phase := range map[string]string{"1.21": "", "1.36": x.phase} {
			a := started(t, c, "--emulated-version="+release)
			ask := a.Validate
			if x.kind == "mutating" {
				ask = a.Mutate
			}
			_, err := ask(t.Context(), create("here"))
			got := varying.ReplaceAllStringFunc(services.AsStatus(err).Error(), func(found string) string {
				if strings.Contains(found, ":") {
					return "ADDRESS"
				}
				return "UID"
			})
			if want := `Internal error occurred: failed calling webhook "` + x.name + `": ` + phase + x.message; got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", release, got, want)
			}
		}
	}
	c := cluster(t)
	configure(t, c, "mutating", "c", s.hook("no-patch", "failurePolicy: Ignore"))
	got, err := started(t, c, "--emulated-version=1.36").Mutate(t.Context(), create("here"))
	if err != nil || got.AuditAnnotations["failed-open.mutation.webhook.admission.platform.io/round_0_index_0"] != "no-patch" ||
		!strings.Contains(got.AuditAnnotations["mutation.webhook.admission.platform.io/round_0_index_0"], `"mutated":false`) {
		t.Errorf("what is no patch, ignored: %v, %v", got.AuditAnnotations, err)
	}
	if _, err := started(t, c, "--emulated-version=1.21").Mutate(t.Context(), create("here")); services.AsStatus(err) == nil {
		t.Error("at 1.21 the failure policy does not apply to what is no patch")
	}
	for name, want := range map[string]string{"patches": "", "missing": `Internal error occurred: admission webhook "missing" attempted to modify the object, which is not supported for this operation`} {
		c := cluster(t)
		s.on("missing", patching(`[{"op":"add","path":"/a","value":1}]`))
		configure(t, c, "mutating", "c", s.hook(name, "failurePolicy: Ignore", `rules: [{operations: [DELETE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`))
		deleted := create("here")
		deleted.Operation, deleted.OldObject, deleted.Object = "DELETE", deleted.Object, nil
		_, err := started(t, c, "--emulated-version=1.36").Mutate(t.Context(), deleted)
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
