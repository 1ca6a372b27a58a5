package corpus

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/compare/internal/corpus/written"
	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

const (
	discovery = `{"resources":[
		{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["create","delete","get","list","patch","update","watch"]},
		{"name":"widgets/status","kind":"Widget","namespaced":true,"verbs":["get","patch","update"]},
		{"name":"olds","kind":"Old","verbs":["get"]}]}`
	ours = `{"definitions":{
		"widget":{"x-kubernetes-group-version-kind":[{"group":"a.example.com","version":"v1","kind":"Widget"}],"properties":{
			"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
			"spec":{"$ref":"#/definitions/spec"},"status":{"type":"object","properties":{"phase":{"type":"string"}}}},"required":["spec"]},
		"spec":{"required":["size"],"properties":{"size":{"type":"integer"},"old":{"type":"string"},
			"parts":{"type":"array","items":{"$ref":"#/definitions/part"}}}},
		"part":{"required":["name"],"properties":{"name":{"type":"string"},"parts":{"type":"array","items":{"$ref":"#/definitions/part"}}}}}}`
)

// corpusOf generates the corpus of two servers; without is removed from the document of
// the second one.
func corpusOf(t *testing.T, without string) []Case {
	t.Helper()
	documents := [2]*openapi.Document{}
	for i, content := range []string{ours, strings.Replace(ours, without, "", 1)} {
		d, err := openapi.Parse([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		documents[i] = d
	}
	path := "/apis/a.example.com/v1"
	kinds, onlyPortico, onlyPeer, err := Kinds(Discovered{path: []byte(discovery)}, Discovered{path: []byte(strings.Replace(discovery, `"olds"`, `"news"`, 1))})
	if err != nil {
		t.Fatal(err)
	}
	if len(kinds) != 1 || len(onlyPortico) != 1 || len(onlyPeer) != 1 {
		t.Fatalf("%d kinds, only portico %q, only the peer %q", len(kinds), onlyPortico, onlyPeer)
	}
	cases, err := New(kinds, documents[0], documents[1])
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func steps(cases []Case, name string) map[string]string {
	all := map[string]string{}
	for _, c := range cases {
		if c.Name == name {
			for i := range c.Steps {
				all[c.Steps[i].Name] = string(c.Steps[i].Content(Seen{}))
			}
		}
	}
	return all
}

func TestNewKindIsIncludedAutomatically(t *testing.T) {
	cases := corpusOf(t, `"old":{"type":"string"},`)
	got := steps(cases, "creates")["minimal"]
	if want := `{"apiVersion":"a.example.com/v1","kind":"Widget","metadata":{"name":"creates"},"spec":{"size":1}}`; got != want {
		t.Errorf("the minimal manifest is %s, expected %s", got, want)
	}
	fields := steps(cases, "field-creates")
	if fields["spec.parts.[].name/set"] == "" || !strings.Contains(fields["spec.size/text"], `"size":"x"`) {
		t.Errorf("fields are missing: %v", fields)
	}
	if fields["spec.old/set"] != "" {
		t.Error("a field that one of the servers lacks is sent")
	}
	for _, name := range []string{"replaces", "json-patches", "merge-patches", "applies", "deletes", "collections", "accepts", "statuses", "field-statuses", "field-patches", "strictness", "conflicts", "documents"} {
		if len(steps(cases, name)) == 0 {
			t.Errorf("there is no case %s", name)
		}
	}
	if len(steps(cases, "scales")) != 0 {
		t.Error("a kind without the subresource scale is scaled")
	}
}

func TestStepsOfCaseHaveOwnNames(t *testing.T) {
	for _, c := range corpusOf(t, "none") {
		seen := map[string]bool{}
		for _, s := range c.Steps {
			if seen[s.Name] && !strings.HasPrefix(s.Name, "end") && s.Name != "begin" {
				t.Errorf("%s has two steps %s", c.Name, s.Name)
			}
			seen[s.Name] = true
		}
	}
}

func TestFilesOfRequestsAreRead(t *testing.T) {
	pod := &Kind{Kind: openapi.Kind{Version: "v1", Kind: "Pod"}, Plural: "pods", Namespaced: true}
	cases, err := requests([]*Kind{pod})
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 4 || len(cases[0].Steps) < 10 || cases[0].Kind != pod {
		t.Fatalf("%d cases about pods", len(cases))
	}
	for _, s := range cases[0].Steps {
		if s.Method == "" || !strings.HasPrefix(s.Path, "/api") {
			t.Errorf("step %s has method %q and path %q", s.Name, s.Method, s.Path)
		}
	}
}

func TestManifestsAreOfTheirKinds(t *testing.T) {
	all, err := written.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Errorf("only %d kinds have a manifest", len(all))
	}
	for k, of := range all {
		if len(of) > 2 {
			t.Errorf("%v has %d manifests", k, len(of))
		}
	}
}

func TestBodyOfEarlierAnswer(t *testing.T) {
	s := Step{Body: again("begin", label("a", "b"))}
	answer := object{"kind": "Widget"}
	got := object{}
	if err := json.Unmarshal(s.Content(Seen{"begin": answer}), &got); err != nil {
		t.Fatal(err)
	}
	if got["metadata"].(object)["labels"].(object)["a"] != "b" || answer["metadata"] != nil {
		t.Errorf("sent %v, and the answer is now %v", got, answer)
	}
}
