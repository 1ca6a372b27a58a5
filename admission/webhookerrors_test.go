package admission_test

import (
	"fmt"
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
	s.on("without-type", `"allowed":true,"patch":"W10=","patchType":""`)
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
		{"mutating", "without-type", "", invalid, `webhook returned invalid response.patchType of ""`},
		{"mutating", "unknown-version", "admissionReviewVersions: [v2]", "could not create admission objects: ", "webhook does not accept known AdmissionReview versions (v1, v1beta1)"},
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
}

// TestWebhookPatchErrors: as in kube-apiserver, a rejection counts whatever the patch is; then the patch is
// decoded, and only if it has operations there must be an object, the type must be supported, and it must apply.
func TestWebhookPatchErrors(t *testing.T) {
	s := serve(t)
	const (
		add      = `[{"op":"add","path":"/a","value":1}]`
		decoder  = "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
		internal = "Internal error occurred: "
		call     = internal + `failed calling webhook "h": `
		absent   = internal + `admission webhook "h" attempted to modify the object, which is not supported for this operation`
	)
	merge := func(patch string) string { return strings.Replace(patching(patch), "JSONPatch", "Merge", 1) }
	rejects := strings.Replace(merge(add), "true", `false,"status":{"code":403}`, 1)
	type want struct {
		message, object string
		ignored         bool // the failure policy has been applied
	}
	fails := func(message string) want { return want{message: message} }
	unchanged, ignored, missing, undecodable := want{}, want{ignored: true}, fails(absent), fails(internal+decoder)
	for name, x := range map[string]struct {
		answer, policy string
		wants          []want // at 1.21 and at 1.36, if they differ
	}{
		"rejection, unsupported type":           {rejects, "Ignore", []want{fails(`admission webhook "h" denied the request without explanation`)}},
		"unsupported type":                      {merge(add), "Fail", []want{fails(call + `unsupported patch type "Merge"`)}},
		"unsupported type, ignored":             {merge(add), "Ignore", []want{ignored}},
		"unsupported type, no operations":       {merge(`[]`), "Fail", []want{unchanged}},
		"unsupported type, undecodable":         {merge(`{}`), "Fail", []want{undecodable, fails(call + "received undecodable patch in webhook response: " + decoder)}},
		"unsupported type, DELETE":              {merge(add), "Ignore", []want{missing}},
		"unsupported type, v1beta1":             {merge(add), "Fail", []want{{object: `{"a":1,"metadata":{"name":"c"}}`}}},
		"undecodable, ignored":                  {patching(`{}`), "Ignore", []want{undecodable, ignored}},
		"undecodable, DELETE":                   {patching(`{}`), "Ignore", []want{undecodable, ignored}},
		"no operations, DELETE":                 {patching(` [ ] `), "Fail", []want{unchanged}},
		"null, DELETE":                          {patching(`null`), "Fail", []want{unchanged}},
		"operations, DELETE":                    {patching(add), "Ignore", []want{missing}},
		"operations that do not apply, ignored": {patching(`[{"op":"remove","path":"/none"}]`), "Ignore", []want{fails(internal + "error in remove for path: '/none': Unable to remove nonexistent key: none: missing value")}},
	} {
		s.on("h", x.answer)
		version := "v1"
		if strings.Contains(name, "v1beta1") {
			version = "v1beta1"
		}
		c, request := cluster(t), create("here")
		configure(t, c, "mutating", "c", s.hook("h", "failurePolicy: "+x.policy, "admissionReviewVersions: ["+version+"]",
			`rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`))
		if strings.Contains(name, "DELETE") {
			request.Operation, request.OldObject, request.Object = services.OperationDelete, request.Object, nil
		}
		for i, release := range []string{"1.21", "1.36"} {
			response, err := started(t, c, "--emulated-version="+release).Mutate(t.Context(), request)
			got := want{object: string(response.Object), ignored: response.AuditAnnotations["failed-open.mutation.webhook.admission.platform.io/round_0_index_0"] == "h"}
			if err != nil {
				got.message = err.Error()
			}
			wanted := x.wants[min(i, len(x.wants)-1)]
			if got != wanted {
				t.Errorf("%s, %s:\ngot  %+v\nwant %+v", name, release, got, wanted)
			}
			if status := services.AsStatus(err); err != nil && (status.Code == http.StatusForbidden) != (x.answer == rejects) {
				t.Errorf("%s, %s: code %d", name, release, status.Code)
			}
			mutated := fmt.Sprintf(`"mutated":%t`, wanted.object != "")
			if note := response.AuditAnnotations["mutation.webhook.admission.platform.io/round_0_index_0"]; !strings.Contains(note, mutated) {
				t.Errorf("%s, %s: annotation %s", name, release, note)
			}
		}
	}
}
