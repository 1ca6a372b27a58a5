package random

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
)

// sent returns the requests of a sequence as a server without answers receives them.
func sent(t *testing.T, seed, number uint64) string {
	t.Helper()
	g, err := NewGenerator()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, step := range g.Sequence(seed, number).Steps {
		fmt.Fprintln(&out, Fill(step, "some-name", corpus.Seen{}))
	}
	return out.String()
}

func TestASeedIsASequence(t *testing.T) {
	if one, again := sent(t, 3, 4), sent(t, 3, 4); one != again {
		t.Errorf("the same seed has two sequences:\n%s\n%s", one, again)
	}
	for _, other := range [][2]uint64{{3, 5}, {4, 4}} {
		if sent(t, 3, 4) == sent(t, other[0], other[1]) {
			t.Errorf("seeds 3, 4 and %v have the same sequence", other)
		}
	}
}

// A missing comma or a typing error in the files would go unnoticed: servers refuse the request alike.
func TestAllKindsAndStepsOccur(t *testing.T) {
	g, err := NewGenerator()
	if err != nil {
		t.Fatal(err)
	}
	kinds, steps := map[string]int{}, map[string]int{}
	for number := range uint64(2000) {
		s := g.Sequence(1, number)
		kinds[s.Kind]++
		for _, step := range s.Steps {
			steps[step.Name[:strings.LastIndex(step.Name, "-")]]++
		}
	}
	for _, k := range g.kinds {
		if kinds[k.ID] == 0 {
			t.Errorf("no sequence is about %s", k.ID)
		}
		if !strings.Contains(k.Collection, Namespace) || k.Base["kind"] == nil || len(k.Fields) == 0 {
			t.Errorf("%s is incomplete", k.ID)
		}
	}
	for _, name := range []string{"create", "replace", "update", "json-patch", "merge", "strategic", "apply", "delete", "delete-all", "status-put", "scale-patch", "text", "list", "watch", "odd", "get"} {
		if steps[name] == 0 {
			t.Errorf("no step is %s", name)
		}
	}
	if definitions, err := Definitions(); err != nil || len(definitions) != 2 {
		t.Errorf("%d definitions, %v", len(definitions), err)
	}
}

// A seed always defines the same type and writes the same objects, in all ways.
func TestSchema(t *testing.T) {
	steps := map[string]int{}
	for seed := range uint64(50) {
		s, again := Schema(seed), Schema(seed)
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("seed %d has two sequences", seed)
		}
		if s.Steps[0].Path != DefinitionsPath || len(Smaller(s.Steps[0])) == 0 {
			t.Errorf("seed %d: no definition whose schema can be smaller: %v", seed, s.Steps[0])
		}
		for _, step := range s.Steps {
			steps[step.Name[:strings.LastIndex(step.Name, "-")]]++
		}
	}
	for _, name := range []string{"create", "replace", "merge", "json-patch", "apply", "get"} {
		if steps[name] == 0 {
			t.Errorf("no step is %s", name)
		}
	}
	if _, err := KeptSeeds(); err != nil {
		t.Error(err)
	}
}

func TestFill(t *testing.T) {
	seen := corpus.Seen{"create-1": {"metadata": object{"resourceVersion": "7", "uid": "u", "name": Namespace}}}
	step := corpus.Step{Path: "/x/" + Namespace, Query: "resourceVersion=<<version create-1>>&continue=<<continue create-1>>",
		Body: func(seen corpus.Seen) any { return encoded(seen["create-1"]) }}
	got := Fill(step, "rnd000001", seen)
	if got.Path != "/x/rnd000001" || got.Query != "resourceVersion=7&continue=" || !strings.Contains(got.Body.(string), `"name":"rnd000001"`) {
		t.Errorf("got %+v", got)
	}
}

func TestSmallerStepsMissOnePart(t *testing.T) {
	step := corpus.Step{Query: "a=1&b=2", Accept: "x", Body: `{"a":{"b":1},"c":[2]}`}
	var got []string
	for _, s := range Smaller(step) {
		got = append(got, s.Accept+" "+s.Query+" "+s.Body.(string))
	}
	want := []string{` a=1&b=2 {"a":{"b":1},"c":[2]}`, `x b=2 {"a":{"b":1},"c":[2]}`, `x a=1 {"a":{"b":1},"c":[2]}`,
		`x a=1&b=2 {"c":[2]}`, `x a=1&b=2 {"a":{},"c":[2]}`, `x a=1&b=2 {"a":{"b":1}}`, `x a=1&b=2 {"a":{"b":1},"c":[]}`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestPutCreatesWhatIsMissing(t *testing.T) {
	o := object{"b": 1}
	put(o, "/a/x~1y", 1)
	put(o, "/b/c", 2)
	if content, _ := json.Marshal(o); string(content) != `{"a":{"x/y":1},"b":{"c":2}}` {
		t.Errorf("got %s", content)
	}
}
