package e2e

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// dryRuns tries every verb without doing it: the answers are those of the real
// thing, refusals included, and nothing is there afterwards.
func dryRuns(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	const dry = "?dryRun=All"
	path := s.in("v1", "configmaps")
	tried := s.do(s.created, "POST "+path+dry, plain(`"name":"a"`, `,"data":{"a":"b"}`))
	s.do(http.StatusNotFound, "GET "+path+"/a", "")
	made := s.do(s.created, "POST "+path, plain(`"name":"a","labels":{"dry":"run"}`, `,"data":{"a":"b"}`))
	if made.GetUID() == tried.GetUID() || tried.at("data", "a") != "b" {
		t.Errorf("tried: %s\nmade: %s", tried.Body, made.Body)
	}
	s.do(http.StatusConflict, "POST "+path+dry, plain(`"name":"a"`, ""))
	s.do(http.StatusUnprocessableEntity, "POST "+path+dry, plain(`"name":"Not_Valid"`, ""))
	s.do(http.StatusUnprocessableEntity, "POST "+path+"?dryRun=Perhaps", plain(`"name":"c"`, ""))
	for name, answer := range map[string]reply{
		"put":    s.do(http.StatusOK, "PUT "+path+"/a"+dry, plain(`"name":"a"`, `,"data":{"a":"changed"}`)),
		"merge":  s.do(http.StatusOK, "PATCH "+path+"/a"+dry, `{"data":{"a":"changed"}}`),
		"json":   s.send(http.StatusOK, patch(path+"/a"+dry, types.JSONPatchType, `[{"op":"replace","path":"/data/a","value":"changed"}]`)),
		"apply":  s.send(http.StatusOK, patch(path+"/a"+dry+"&fieldManager=me&force=true", types.ApplyPatchType, plain(`"name":"a"`, `,"data":{"a":"changed"}`))),
		"strong": s.send(http.StatusOK, patch(path+"/a"+dry, types.StrategicMergePatchType, `{"data":{"a":"changed"}}`)),
	} {
		if answer.at("data", "a") != "changed" || answer.GetUID() != made.GetUID() {
			t.Errorf("%s answered %s", name, answer.Body)
		}
	}
	s.send(s.created, patch(path+"/new"+dry+"&fieldManager=me", types.ApplyPatchType, plain(`"name":"new"`, "")))
	s.do(http.StatusNotFound, "GET "+path+"/new", "")
	s.do(http.StatusOK, "DELETE "+path+"/a"+dry, "")
	s.do(http.StatusOK, "DELETE "+path+"/a", `{"dryRun":["All"]}`)
	s.do(http.StatusOK, "DELETE "+path+dry+"&labelSelector=dry%3Drun", "")
	s.do(http.StatusOK, "DELETE "+path+"?labelSelector=dry%3Drun", `{"dryRun":["All"]}`)
	if now := s.do(http.StatusOK, "GET "+path+"/a", ""); now.Body != made.Body {
		t.Errorf("after it all it is\n%s\nand was\n%s", now.Body, made.Body)
	}
	s.do(http.StatusOK, "DELETE "+path+"?labelSelector=dry%3Drun", "")
	s.do(http.StatusNotFound, "GET "+path+"/a", "")
	dryAddresses(s)
}

// dryAddresses tries to take an address: it is as free as before.
func dryAddresses(s scene) {
	path := s.in("v1", "services")
	service := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{` + spec + `"ports":[{"port":80}]}}`
	}
	made := s.do(s.created, "POST "+path, service(""))
	address := `"clusterIP":"` + made.at("spec", "clusterIP") + `",`
	if !strings.Contains(address, ".") && !strings.Contains(address, ":") {
		s.t.Fatalf("the service got no address: %s", made.Body)
	}
	other := strings.Replace(service(address), `"a"`, `"b"`, 1)
	s.do(http.StatusUnprocessableEntity, "POST "+path+"?dryRun=All", other)
	s.do(http.StatusOK, "DELETE "+path+"/a?dryRun=All", "")
	s.do(http.StatusUnprocessableEntity, "POST "+path, other)
	s.do(http.StatusOK, "DELETE "+path+"/a", "")
	for range 2 {
		s.do(s.created, "POST "+path+"?dryRun=All", other)
	}
	s.do(s.created, "POST "+path, other)
}

func patch(path string, mediaType types.PatchType, body string) cluster.Request {
	return cluster.Request{Method: http.MethodPatch, Path: path, Type: string(mediaType), Body: body}
}
