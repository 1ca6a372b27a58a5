package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// scene is a namespace of one test, written to with plain requests.
type scene struct {
	t         *testing.T
	c         *cluster.Cluster
	namespace string
	created   int // the status of a successful create
}

func newScene(t *testing.T, c *cluster.Cluster) scene {
	t.Helper()
	return scene{t, c, newNamespace(t, c.Client(t)), c.Vocabulary.Behaviour.CreatedStatus}
}

// in returns the path of something in the namespace: in("apps/v1", "deployments/web").
func (s scene) in(version, rest string) string {
	prefix := "/apis/" + version
	if version == "v1" {
		prefix = "/api/v1"
	}
	return prefix + "/namespaces/" + s.namespace + "/" + rest
}

// reply is an answer with its object, a Status where there is none.
type reply struct {
	unstructured.Unstructured
	cluster.Answer
}

// send sends one request, whose answer has to have the code.
func (s scene) send(code int, r cluster.Request) reply {
	s.t.Helper()
	answer := reply{Answer: s.c.Ask(s.t, r)}
	if answer.Code != code {
		s.t.Fatalf("%s %s %.300s\ngot %d, want %d: %.500s", r.Method, r.Path, r.Body, answer.Code, code, answer.Body)
	}
	answer.Decode(s.t, &answer.Object)
	return answer
}

// do sends what a line says, as "GET /path"; patches are merge patches.
func (s scene) do(code int, line, body string) reply {
	s.t.Helper()
	method, path, _ := strings.Cut(line, " ")
	r := cluster.Request{Method: method, Path: path, Body: body}
	if method == http.MethodPatch {
		r.Type = string(types.MergePatchType)
	}
	return s.send(code, r)
}

// names checks that an error's message contains texts.
func (s scene) names(r reply, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if message, _, _ := unstructured.NestedString(r.Object, "message"); !strings.Contains(message, text) {
			s.t.Errorf("the message does not name %q: %s", text, message)
		}
	}
}

// plain is a ConfigMap with something in its metadata, and something beside it.
func plain(metadata, rest string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + metadata + `}` + rest + `}`
}

// at returns a field as text; none is "<nil>".
func (r reply) at(path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(r.Object, path...)
	return fmt.Sprint(value)
}

// crowd is how many write the same object at once.
const crowd = 64

// together sends that many requests at once, which all have to succeed.
func (s scene) together(code int, request func(i int) cluster.Request) []reply {
	replies := make([]reply, crowd)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() {
			var err error
			if replies[i].Answer, err = s.c.Do(s.t.Context(), request(i)); err != nil || replies[i].Code != code {
				s.t.Errorf("request %d: %d %.200s %v", i, replies[i].Code, replies[i].Body, err)
			}
		})
	}
	all.Wait()
	for i := range replies {
		replies[i].Decode(s.t, &replies[i].Object)
	}
	return replies
}

// different counts the values of a field.
func different(replies []reply, path ...string) int {
	values := map[string]bool{}
	for _, r := range replies {
		values[r.at(path...)] = true
	}
	return len(values)
}

// crowdedObject is patched by many at once, who name no version: nothing is lost.
func crowdedObject(t *testing.T, c *cluster.Cluster) {
	for mediaType, body := range map[types.PatchType]string{
		types.MergePatchType: `{"data":{"key%d":"x"}}`,
		types.JSONPatchType:  `[{"op":"add","path":"/data/key%d","value":"x"}]`,
	} {
		t.Run(string(mediaType), func(t *testing.T) {
			s := newScene(t, c)
			path := s.in("v1", "configmaps")
			s.do(s.created, "POST "+path, plain(`"name":"shared"`, `,"data":{"a":"b"}`))
			replies := s.together(http.StatusOK, func(i int) cluster.Request { return patch(path+"/shared", mediaType, fmt.Sprintf(body, i)) })
			if n := different(replies, "metadata", "resourceVersion"); n != crowd {
				t.Errorf("%d writers were given %d versions", crowd, n)
			}
			if data, _, _ := unstructured.NestedMap(s.do(http.StatusOK, "GET "+path+"/shared", "").Object, "data"); len(data) != crowd+1 {
				t.Errorf("%d of %d keys are there", len(data), crowd+1)
			}
		})
	}
}

// generatedNames has the service make names.
func generatedNames(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	path := s.in("v1", "configmaps")
	replies := s.together(s.created, func(int) cluster.Request {
		return cluster.Request{Method: http.MethodPost, Path: path, Body: plain(`"generateName":"a-"`, "")}
	})
	if n := different(replies, "metadata", "name"); n != crowd {
		t.Errorf("%d objects got %d names", crowd, n)
	}
	base := strings.Repeat("x", 100)
	long := s.do(s.created, "POST "+path, plain(`"generateName":"`+base+`"`, ""))
	if len(long.GetName()) > 63 || long.GetGenerateName() != base {
		t.Errorf("the name made of a long one is %q", long.GetName())
	}
	if both := s.do(s.created, "POST "+path, plain(`"name":"mine","generateName":"a-"`, "")); both.GetName() != "mine" {
		t.Errorf("the name given is mine, and that made %q", both.GetName())
	}
}

// conditionalWrites names the object or the version that is meant.
func conditionalWrites(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	path := s.in("v1", "configmaps/a")
	first := s.do(s.created, "POST "+s.in("v1", "configmaps"), plain(`"name":"a"`, ""))
	version, other := first.GetResourceVersion(), "00000000-0000-4000-8000-000000000000"
	second := s.do(http.StatusOK, "PATCH "+path, `{"metadata":{"resourceVersion":"`+version+`"},"data":{"a":"b"}}`)
	for stale, patched := range map[string]int{
		`"resourceVersion":"` + version + `"`: http.StatusConflict,
		`"uid":"` + other + `"`:               http.StatusUnprocessableEntity, // a patch is a change of it
	} {
		s.do(patched, "PATCH "+path, `{"metadata":{`+stale+`}}`)
		s.do(http.StatusConflict, "PUT "+path, plain(`"name":"a",`+stale, ""))
		s.do(http.StatusConflict, "DELETE "+path, `{"preconditions":{`+stale+`}}`)
	}
	if now := s.do(http.StatusOK, "GET "+path, ""); now.GetResourceVersion() != second.GetResourceVersion() {
		t.Errorf("a refused write made the version %s of %s", now.GetResourceVersion(), second.GetResourceVersion())
	}
	for what, same := range map[string]reply{
		"an empty patch":   s.do(http.StatusOK, "PATCH "+path, `{}`),
		"no kind":          s.do(http.StatusOK, "PATCH "+path, `{"kind":null}`),
		"the same content": s.do(http.StatusOK, "PUT "+path, plain(`"name":"a"`, `,"data":{"a":"b"}`)),
	} {
		if same.GetResourceVersion() != second.GetResourceVersion() {
			t.Errorf("%s made a new version", what)
		}
	}
	s.do(http.StatusBadRequest, "PUT "+path, plain(`"name":"b"`, ""))
	for _, other := range []string{`{"kind":"Secret"}`, `{"apiVersion":"v2"}`} {
		s.do(http.StatusUnprocessableEntity, "PATCH "+path, other)
	}
	for _, other := range []string{`{"metadata":{"name":"b"}}`, `{"metadata":{"namespace":"b"}}`, `{"metadata":null}`} {
		s.do(http.StatusBadRequest, "PATCH "+path, other)
	}
	s.do(http.StatusOK, "DELETE "+path, fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":%q}}`, second.GetUID(), second.GetResourceVersion()))
	s.do(http.StatusNotFound, "PUT "+path, plain(`"name":"a"`, ""))
}

// fixedObjects changes immutable objects.
func fixedObjects(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	for resource, kind := range map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"} {
		path := s.in("v1", resource+"/fixed")
		body := `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"fixed"},"data":{"a":"YQ=="}`
		s.do(s.created, "POST "+s.in("v1", resource), body+`}`)
		s.do(http.StatusOK, "PATCH "+path, `{"data":{"b":"Yg=="}}`)
		s.do(http.StatusOK, "PATCH "+path, `{"immutable":true}`)
		s.names(s.do(http.StatusUnprocessableEntity, "PATCH "+path, `{"data":{"c":"Yw=="}}`), "data", "immutable")
		s.do(http.StatusUnprocessableEntity, "PATCH "+path, `{"immutable":false}`)
		s.do(http.StatusUnprocessableEntity, "PUT "+path, body+`,"immutable":true}`)
		s.do(http.StatusOK, "PATCH "+path, `{"metadata":{"labels":{"still":"changes"}}}`)
		s.do(http.StatusOK, "DELETE "+path, "")
	}
}
