package rights

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Webhooks lets mutating webhooks try to change what only the service writes. The webhook
// applies the JSON patch that an annotation of the object holds.
func Webhooks(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	remote := s.serveWebhook()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: remote.Certificate().Raw}))
	const path = "/apis/$admission/v1/mutatingwebhookconfigurations"
	s.Cleanup(func() { s.remove(path + "/$id") })
	s.do(c, "POST "+path, `{"apiVersion":"$admission/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"$id"},"webhooks":[{
		"name":"patch.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","timeoutSeconds":10,"reinvocationPolicy":"Never",
		"clientConfig":{"url":"`+remote.URL+`","caBundle":"`+ca+`"},"namespaceSelector":{"matchLabels":{"webhooks":"$id"}},
		"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"],"scope":"Namespaced"}]}]}`, 0)
	s.do(c, "PATCH /api/v1/namespaces/$id", `{"metadata":{"labels":{"webhooks":"$id"}}}`, 0)
	s.await("the webhook is asked", func() bool {
		answer := s.admin.Ask(s.T, cluster.Request{Method: "POST", Path: s.names.Replace("/api/v1/namespaces/$id/configmaps?dryRun=All"),
			Body: configMap("probe", `[{"op":"add","path":"/data","value":{"asked":"yes"}}]`)})
		return strings.Contains(answer.Body, `"asked":"yes"`)
	})
	creates(s)
	updates(s)
	parts(s)
	bodies(s)
	refusals(s)
}

// scalePatch changes what a Scale may change, and what it may not.
const scalePatch = `[{"op":"add","path":"/spec/replicas","value":9},{"op":"add","path":"/status/replicas","value":7},
	{"op":"add","path":"/metadata/labels","value":{"hacked":"yes"}}]`

// serveWebhook serves a webhook over HTTPS until the test ends.
func (s *stage) serveWebhook() *httptest.Server {
	remote := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string
			Request    struct {
				UID         string
				SubResource string
				Object      struct {
					Metadata struct{ Annotations map[string]string }
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response, annotations := map[string]any{"uid": review.Request.UID, "allowed": true}, review.Request.Object.Metadata.Annotations
		patch := annotations["patch"+review.Request.SubResource]
		if review.Request.SubResource == "scale" { // a Scale has no annotations
			patch = scalePatch
		}
		if patch != "" && r.URL.Path != "/Validating" {
			response["patchType"], response["patch"] = "JSONPatch", []byte(patch)
		}
		if code := annotations["refuse"]; code != "" {
			response["allowed"], response["status"] = false, map[string]any{"code": json.Number(code), "message": "refused"}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": "AdmissionReview", "response": response})
	}))
	remote.Config.ErrorLog = log.New(io.Discard, "", 0)
	remote.StartTLS()
	s.Cleanup(remote.Close)
	return remote
}

// annotated are the annotations that make the webhook patch an object on a path: that of
// the object itself, or of a subresource.
func annotated(patch string, subresource ...string) string {
	quoted, _ := json.Marshal(patch) // a text always encodes
	return `"annotations":{"patch` + strings.Join(subresource, "") + `":` + string(quoted) + `}`
}

func configMap(name, patch string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `",` + annotated(patch) + `}}`
}

const configMaps = "/api/v1/namespaces/$id/configmaps"

// creates lets the webhook change new objects.
func creates(s *stage) {
	set := func(path, value string) string { return `[{"op":"add","path":"` + path + `","value":` + value + `}]` }
	for _, x := range []struct {
		name, patch string
		code        int // 0: created
		message     string
	}{
		{"namespace", set("/metadata/namespace", `"$system"`), 400, "namespace"},
		{"no-namespace", `[{"op":"remove","path":"/metadata/namespace"}]`, 0, ""},
		{"name", set("/metadata/name", `"other"`), 400, "name"},
		{"kind", set("/kind", `"Secret"`), 500, "kind"},
		{"version", set("/apiVersion", `"v2"`), 500, "apiVersion"},
		{"metadata", `[{"op":"remove","path":"/metadata"}]`, 500, "metadata"},
		{"uid", set("/metadata/uid", `"hacked"`), 0, ""},
		{"no-uid", `[{"op":"remove","path":"/metadata/uid"}]`, 0, ""},
		{"created", set("/metadata/creationTimestamp", `"2001-01-01T00:00:00Z"`), 0, ""},
		{"deleted", set("/metadata/deletionTimestamp", `"2001-01-01T00:00:00Z"`), 0, ""},
		{"grace", set("/metadata/deletionGracePeriodSeconds", `7`), 0, ""},
		{"revision", set("/metadata/resourceVersion", `"7"`), 0, ""},
		{"generation", set("/metadata/generation", `7`), 0, ""},
		{"owners", set("/metadata/managedFields", `[{"manager":"hacked","operation":"Apply"}]`), 0, ""},
		{"link", set("/metadata/selfLink", `"/hacked"`), 0, ""},
		{"data", set("/data", `{"a":"b"}`), 0, ""},
	} {
		s.Run("create with another "+x.name, func(t *testing.T) {
			one := *s
			one.T = t
			answer := one.do(s.admin, "POST "+configMaps, s.names.Replace(configMap(x.name, s.names.Replace(x.patch))), x.code)
			if x.code != 0 {
				if !strings.Contains(answer.Body, x.message) || !strings.Contains(answer.Body, `"kind":"Status"`) {
					t.Errorf("the refusal does not name %q: %.300s", x.message, answer.Body)
				}
				one.do(s.admin, "GET "+configMaps+"/"+x.name, "", 404)
				return
			}
			meta := one.object(configMaps + "/" + x.name)["metadata"].(map[string]any)
			uid, _ := meta["uid"].(string)
			if len(uid) != 36 || meta["namespace"] != s.id || meta["name"] != x.name || strings.HasPrefix(fmt.Sprint(meta["creationTimestamp"]), "2001") ||
				meta["deletionTimestamp"] != nil || meta["deletionGracePeriodSeconds"] != nil || meta["generation"] != nil || meta["selfLink"] != nil ||
				meta["resourceVersion"] == "7" || strings.Contains(fmt.Sprint(meta["managedFields"]), "hacked") {
				t.Errorf("the webhook has made it %v", meta)
			}
		})
	}
}

// updates lets the webhook change objects that exist.
func updates(s *stage) {
	s.do(s.admin, "POST "+configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"there"}}`, 0)
	before := s.object(configMaps + "/there")["metadata"].(map[string]any)
	for _, x := range []struct {
		field, value string
		code         int // 0: updated, without that
	}{
		{"namespace", `"$system"`, 400}, {"name", `"other"`, 400}, {"uid", `"hacked"`, 422}, {"deletionTimestamp", `"2001-01-01T00:00:00Z"`, 422},
		{"creationTimestamp", `"2001-01-01T00:00:00Z"`, 0}, {"resourceVersion", `"7"`, 0}, {"generation", `7`, 0},
		{"managedFields", `[{"manager":"hacked","operation":"Apply"}]`, 0},
	} {
		for _, line := range []string{"PUT " + configMaps + "/there", "PATCH " + configMaps + "/there"} {
			s.Run(line[:5]+" with another "+x.field, func(t *testing.T) {
				one := *s
				one.T = t
				patch := s.names.Replace(`[{"op":"add","path":"/metadata/` + x.field + `","value":` + x.value + `}]`)
				one.do(s.admin, line, configMap("there", patch), x.code)
				after := one.object(configMaps + "/there")["metadata"].(map[string]any)
				for _, field := range []string{"namespace", "name", "uid", "creationTimestamp", "deletionTimestamp", "generation"} {
					if after[field] != before[field] {
						t.Errorf("%s was %v and is %v", field, before[field], after[field])
					}
				}
				if strings.Contains(fmt.Sprint(after["managedFields"]), "hacked") || after["resourceVersion"] == "7" {
					t.Errorf("the webhook has made it %v", after)
				}
			})
		}
	}
}

// parts lets the webhook change the parts of an object that the path does not write.
func parts(s *stage) {
	const deployments = "/apis/apps/v1/namespaces/$id/deployments"
	patch := func(operations ...string) string { return "[" + strings.Join(operations, ",") + "]" }
	status := `{"op":"add","path":"/status","value":{"replicas":7}}`
	spec, replicas := `{"op":"add","path":"/spec/paused","value":true}`, `{"op":"add","path":"/spec/replicas","value":5}`
	s.do(s.admin, "POST "+deployments, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a",`+annotated(patch(status, replicas))+`},
		"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`, 0)
	s.expect(deployments+"/a", map[string]string{"spec.replicas": "5", "status.replicas": "<nil>"})
	s.do(s.admin, "PATCH "+deployments+"/a", `{"metadata":{`+annotated(patch(status, spec))+`}}`, 0)
	s.expect(deployments+"/a", map[string]string{"spec.paused": "true", "status.replicas": "<nil>"})
	s.do(s.admin, "PATCH "+deployments+"/a", `{"spec":{"paused":null},"metadata":{"annotations":null}}`, 0)
	s.do(s.admin, "PATCH "+deployments+"/a/status", `{"status":{"replicas":3},"metadata":{`+annotated(patch(spec, replicas), "status")+`}}`, 0)
	s.expect(deployments+"/a", map[string]string{"spec.replicas": "5", "spec.paused": "<nil>", "status.replicas": "3"})
	s.do(s.admin, "PATCH "+deployments+"/a/scale", `{"spec":{"replicas":1}}`, 0)
	s.expect(deployments+"/a", map[string]string{"spec.replicas": "9", "spec.paused": "<nil>", "status.replicas": "3", "metadata.labels": "<nil>"})
}

// bodies lets the webhook change request bodies.
func bodies(s *stage) {
	pod := func(name string) {
		s.do(s.admin, "POST /api/v1/namespaces/$id/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"a","image":"a"}]}}`, 0)
	}
	pod("first")
	pod("second")
	for path, subresource := range map[string]string{"pods/first/binding": "binding", "bindings": ""} {
		for member, value := range map[string]string{"name": "second", "namespace": "$system"} {
			s.do(s.admin, "POST /api/v1/namespaces/$id/"+path, s.names.Replace(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"first",`+
				annotated(s.names.Replace(`[{"op":"add","path":"/metadata/`+member+`","value":"`+value+`"}]`), subresource)+`},"target":{"kind":"Node","name":"n"}}`), 400)
		}
	}
	s.expect("/api/v1/namespaces/$id/pods/second", map[string]string{"spec.nodeName": "<nil>"})
	s.do(s.admin, "POST /api/v1/namespaces/$id/pods/first/eviction", `{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"first",`+
		annotated(`[{"op":"add","path":"/metadata/name","value":"second"}]`, "eviction")+`}}`, 400)
	s.do(s.admin, "POST /api/v1/namespaces/$id/serviceaccounts/default/token", `{"apiVersion":"$authentication/v1","kind":"TokenRequest","metadata":{`+
		annotated(`[{"op":"add","path":"/spec/expirationSeconds","value":4294967297}]`, "token")+`},"spec":{}}`, 422)
}

// refusals lets the webhook answer with codes that are none of HTTP's errors.
func refusals(s *stage) {
	for code, want := range map[string]int{"0": 400, "200": 400, "399": 400, "418": 418, "503": 503, "600": 400, "1000": 400, "2147483647": 400, "-5": 400} {
		answer := s.do(s.admin, "POST "+configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"refused","annotations":{"refuse":"`+code+`"}}}`, want)
		if !strings.Contains(answer.Body, "denied the request: refused") {
			s.Errorf("code %s: %.300s", code, answer.Body)
		}
	}
}

// expect compares fields of an object, by their paths.
func (s *stage) expect(path string, fields map[string]string) {
	s.Helper()
	object := s.object(path)
	for field, want := range fields {
		var value any = object
		for name := range strings.SplitSeq(field, ".") {
			in, _ := value.(map[string]any)
			value = in[name]
		}
		if got := fmt.Sprint(value); got != want {
			s.Errorf("%s of %s is %s, want %s", field, path, got, want)
		}
	}
}
