package e2e

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// halves writes the spec where the status belongs, and the other way round.
func halves(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	path := s.in("apps/v1", "deployments/web")
	body := func(replicas, status string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"replicas":"` + replicas + `"}},"spec":{"replicas":` + replicas +
			`,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}},"status":` + status + `}`
	}
	is := func(r reply, generation, replicas, ready string) {
		t.Helper()
		if r.at("metadata", "generation") != generation || r.at("spec", "replicas") != replicas || r.at("status", "readyReplicas") != ready {
			t.Errorf("want generation %s, %s replicas and %s ready: %s", generation, replicas, ready, r.Body)
		}
	}
	none := "<nil>"
	is(s.do(s.created, "POST "+s.in("apps/v1", "deployments"), body("1", `{"readyReplicas":7}`)), "1", "1", none)
	is(s.do(http.StatusOK, "PUT "+path, body("1", `{"readyReplicas":7}`)), "1", "1", none)
	is(s.do(http.StatusOK, "PUT "+path, body("2", `{}`)), "2", "2", none)
	status := s.do(http.StatusOK, "PUT "+path+"/status", body("5", `{"replicas":2,"readyReplicas":1}`))
	is(status, "2", "2", "1")
	if status.GetLabels()["replicas"] != "2" {
		t.Errorf("a write of the status changed the labels: %v", status.GetLabels())
	}
	is(s.do(http.StatusOK, "PATCH "+path+"/status", `{"spec":{"replicas":6},"status":{"readyReplicas":2}}`), "2", "2", "2")
	is(s.do(http.StatusOK, "PATCH "+path, `{"spec":{"replicas":3},"status":{"readyReplicas":9}}`), "3", "3", "2")
	is(s.do(http.StatusOK, "PUT "+path, body("3", `{}`)), "3", "3", "2")
	is(s.do(http.StatusOK, "PATCH "+path, `{"metadata":{"labels":{"c":"d"}}}`), "3", "3", "2")
	if scale := s.do(http.StatusOK, "PATCH "+path+"/scale", `{"spec":{"replicas":4}}`); scale.GetKind() != "Scale" || scale.at("spec", "replicas") != "4" {
		t.Errorf("the scale: %s", scale.Body)
	}
	is(s.do(http.StatusOK, "GET "+path, ""), "4", "4", "2")
	is(s.do(http.StatusOK, "GET "+path+"/status", ""), "4", "4", "2")
	s.names(s.do(http.StatusUnprocessableEntity, "PATCH "+path+"/scale", `{"spec":{"replicas":-1}}`), "spec.replicas")
	s.names(s.do(http.StatusUnprocessableEntity, "PATCH "+path+"/status", `{"status":{"readyReplicas":3}}`), "status.readyReplicas")
	s.do(http.StatusNotFound, "PATCH "+s.in("apps/v1", "deployments/nothing/status"), `{}`)
}

// unknownFields sends unknown and duplicate fields.
func unknownFields(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	path := s.in("v1", "configmaps")
	body := plain(`"name":"a"`, `,"data":{"a":"b"},"nothing":1,"data":{"a":"b"}`)
	s.do(s.created, "POST "+path, plain(`"name":"a"`, `,"data":{"a":"b"}`))
	for name, r := range map[string]cluster.Request{
		"create": {Method: http.MethodPost, Path: path + "?dryRun=All", Body: strings.Replace(body, `"name":"a"`, `"name":"b"`, 1)},
		"update": {Method: http.MethodPut, Path: path + "/a?dryRun=All", Body: body},
		"merge":  patch(path+"/a?dryRun=All", types.MergePatchType, `{"nothing":1,"data":{"c":"d"},"data":{"a":"b"}}`),
		"apply":  patch(path+"/a?dryRun=All&fieldManager=me&force=true", types.ApplyPatchType, plain(`"name":"a"`, `,"data":{"a":"b"},"data":{"a":"b"}`)),
	} {
		objections := []string{`duplicate field "data"`, `unknown field "nothing"`}
		if name == "apply" {
			objections = []string{`key "data" already set in map`} // it is read as YAML
		}
		in := r
		in.Path = r.Path + "&fieldValidation=Strict"
		code := http.StatusBadRequest
		if name == "merge" {
			code = http.StatusUnprocessableEntity // it is the patched object that does not fit
		}
		refused := s.send(code, in)
		s.names(refused, objections...)
		if name == "create" || name == "update" {
			s.names(refused, `unknown field "nothing", duplicate field "data"`) // as in the body
		}
		in.Path = r.Path + "&fieldValidation=Ignore"
		if warned := s.c.Ask(t, in).Header.Values("Warning"); len(warned) > 0 {
			t.Errorf("%s: nobody asked for the warnings %q", name, warned)
		}
		for _, path := range []string{r.Path, r.Path + "&fieldValidation=Warn"} {
			in.Path = path
			answer := s.c.Ask(t, in)
			warnings := strings.ReplaceAll(strings.Join(answer.Header.Values("Warning"), "\n"), `\"`, `"`)
			for _, objection := range objections {
				if !strings.Contains(warnings, objection) || answer.Code >= http.StatusBadRequest {
					t.Errorf("%s: %d %.200s with the warnings %q, want %q", name, answer.Code, answer.Body, warnings, objection)
				}
			}
		}
		in.Path = r.Path + "&fieldValidation=Perhaps"
		s.send(http.StatusUnprocessableEntity, in)
	}
}
