// Package random generates sequences of requests from a seed: the same seed is always the same
// sequence. It neither sends requests nor compares responses.
package random

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	yamls "sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
)

//go:embed kinds.yaml
var kindsFile []byte

//go:embed values.yaml
var valuesFile []byte

//go:embed definitions.yaml
var definitionsFile []byte

// Namespace stands in paths and bodies for the namespace of a sequence, which has as many letters.
const Namespace = "rnd-names"

// steps is the number of requests of a sequence about its objects.
const steps = 14

type object = map[string]any

// kind is an entry of kinds.yaml.
type kind struct {
	ID, Collection string
	Versions       []string
	Base           object
	Fields         map[string][]any
	Strategic      map[string][]any
	Subresources   map[string][]any
}

// Generator generates sequences.
type Generator struct {
	kinds  []*kind
	values values
}

// values is what values.yaml has.
type values struct {
	Accepts   []string
	Deletions []any
}

// NewGenerator reads the kinds and values.
func NewGenerator() (*Generator, error) {
	g := &Generator{}
	return g, errors.Join(yamls.UnmarshalStrict(kindsFile, &g.kinds), yamls.UnmarshalStrict(valuesFile, &g.values))
}

// Definitions returns the requests that create the types of custom objects.
func Definitions() (all []corpus.Step, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(definitionsFile), 4096)
	for {
		var o object
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, corpus.Step{Name: "definition", Method: http.MethodPost, Path: "/apis/" + fmt.Sprint(o["apiVersion"]) + "/customresourcedefinitions", Body: o})
	}
}

// Ready returns the request that succeeds when the types of custom objects are served.
func Ready() []corpus.Step {
	return []corpus.Step{
		{Method: http.MethodGet, Path: "/apis/compare.example.com/v1/widgets"},
		{Method: http.MethodGet, Path: "/apis/compare.example.com/v2/widgets"},
		{Method: http.MethodGet, Path: "/apis/compare.example.com/v1/gadgets"},
	}
}

// Prepare returns the request that creates the namespace of a sequence.
func Prepare() corpus.Step {
	return corpus.Step{Name: "namespace", Method: http.MethodPost, Path: "/api/v1/namespaces",
		Body: object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": Namespace}}}
}

// Sequence is a sequence of requests about objects of one kind.
type Sequence struct {
	Kind  string // plural.version.group
	Seed  string // what to repeat
	Steps []corpus.Step
}

// Sequence returns a sequence. Each object is created before the others are about it.
func (g *Generator) Sequence(seed, number uint64) Sequence {
	d := dice{rand.New(rand.NewPCG(seed, number))} //nolint:gosec // the same seed must give the same requests
	s := &sequence{dice: d, values: &g.values, kind: g.kinds[d.IntN(len(g.kinds))]}
	s.add("create", "1", corpus.Step{Method: http.MethodPost, Path: s.kind.Collection, Body: encoded(s.whole("a"))})
	for len(s.steps) < steps {
		s.step(fmt.Sprint(len(s.steps) + 1))
	}
	return Sequence{Kind: s.kind.ID, Seed: fmt.Sprintf("sequence %d", number), Steps: s.steps}
}

type sequence struct {
	dice
	values *values
	kind   *kind
	steps  []corpus.Step
}

// add adds a request. Its name is what is done, and its number.
func (s *sequence) add(what, number string, step corpus.Step) {
	step.Name = what + "-" + number
	if step.Method != http.MethodGet && strings.Contains(step.Accept, "MetadataList") {
		step.Accept = "" // the reference server makes the change before it refuses the response
	}
	s.steps = append(s.steps, step)
}

// earlier returns the name of an earlier step.
func (s *sequence) earlier() string { return s.steps[s.IntN(len(s.steps))].Name }

func (s *sequence) step(number string) {
	name, step := "", corpus.Step{}
	switch n := s.IntN(100); {
	case n < 12:
		name, step = s.create()
	case n < 20:
		name, step = s.replace()
	case n < 30:
		name, step = s.jsonPatch()
	case n < 38:
		name, step = s.mergePatch()
	case n < 46:
		name, step = s.strategicPatch()
	case n < 62:
		name, step = s.apply()
	case n < 68:
		name, step = s.remove()
	case n < 70:
		name, step = s.removeAll()
	case n < 76:
		name, step = s.subresource()
	case n < 79:
		name, step = s.text()
	case n < 88:
		name, step = s.list()
	case n < 91:
		name, step = s.watch()
	case n < 95:
		name, step = s.odd()
	default:
		name, step = s.get()
	}
	s.add(name, number, step)
}

// dice makes choices.
type dice struct{ *rand.Rand }

// one reports true once in n times.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

// pick returns one of the values.
func pick[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// key returns one of the keys of a map, whose order is not that of the map.
func key[V any](d dice, of map[string]V) string {
	return pick(d, slices.Sorted(maps.Keys(of))...)
}

// encoded returns a value as JSON text.
func encoded(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // placeholders have < and >
	_ = encoder.Encode(value)    // only JSON types
	return string(bytes.TrimSpace(out.Bytes()))
}
