package random

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/kit/kittest/schemas"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/compare/internal/corpus"
)

var group = vocabulary.K8s().Group("apiextensions.")

// DefinitionsPath and DefinitionsKind are the path and the kind of CustomResourceDefinitions.
var (
	DefinitionsPath = "/apis/" + group + "/v1/customresourcedefinitions"
	DefinitionsKind = "customresourcedefinitions.v1." + group
)

//go:embed seeds.yaml
var seedsFile []byte

// KeptSeeds returns seeds of random schemas that have once shown a fault.
func KeptSeeds() (seeds []uint64, err error) {
	err = yaml.UnmarshalStrict(seedsFile, &seeds)
	return seeds, err
}

// writesOfSchema is the number of requests about the objects of a random schema.
const writesOfSchema = 24

// WidgetsPath is the path of the objects of a random schema. The group is that of the sequence.
const WidgetsPath = "/apis/" + Namespace + ".example.com/v1/namespaces/" + Namespace + "/widgets"

// WidgetsName is the name of their definition.
const WidgetsName = "widgets." + Namespace + ".example.com"

// Schema returns the sequence of a seed that defines a type with a random structural schema, which may not be
// valid, and then writes random objects in all ways.
func Schema(seed uint64) Sequence {
	g := schemas.New(seed)
	g.Whole = true
	d := dice{rand.New(rand.NewPCG(seed, 8))} //nolint:gosec // the same seed must give the same requests
	s := &writer{dice: d, generator: g, spec: g.Schema(schemas.Depth)}
	root := object{"type": "object", "properties": object{"spec": s.spec}}
	subresources := object{}
	if s.one(3) {
		s.status = g.Schema(schemas.Depth - 1)
		root["properties"].(object)["status"] = s.status
		subresources["status"] = object{}
	}
	version := object{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": root}, "subresources": subresources}
	s.add("definition", "1", corpus.Step{Method: http.MethodPost, Path: DefinitionsPath, Body: encoded(object{
		"apiVersion": group + "/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": WidgetsName},
		"spec": object{"group": Namespace + ".example.com", "scope": "Namespaced", "versions": []any{version},
			"names": object{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}},
	})})
	for len(s.steps) < writesOfSchema {
		s.write(fmt.Sprint(len(s.steps) + 1))
	}
	return Sequence{Kind: "widgets.v1.example.com", Seed: fmt.Sprintf("seed %d", seed), Steps: s.steps}
}

// writer makes the writes of a random schema.
type writer struct {
	dice
	generator    *schemas.Generator
	spec, status object // their schemas; no status if it is not declared
	steps        []corpus.Step
}

func (s *writer) add(what, number string, step corpus.Step) {
	step.Name = what + "-" + number
	s.steps = append(s.steps, step)
}

// object returns an object with a random spec, and often a status if there is one.
func (s *writer) object(name string) object {
	o := object{"apiVersion": Namespace + ".example.com/v1", "kind": "Widget", "metadata": object{"name": name}}
	if !s.one(20) {
		o["spec"] = s.generator.Value(s.spec, schemas.Depth)
	}
	if s.status != nil && s.one(2) {
		o["status"] = s.generator.Value(s.status, schemas.Depth-1)
	}
	return o
}

// query returns the parameters of a write.
func (s *writer) query(given ...string) string {
	if s.one(2) {
		given = append(given, "fieldValidation="+pick(s.dice, "Strict", "Strict", "Ignore"))
	}
	return strings.Join(given, "&")
}

func (s *writer) write(number string) {
	name := pick(s.dice, "a", "a", "b")
	to := WidgetsPath + "/" + name
	if s.status != nil && s.one(4) {
		to += "/status"
	}
	patch := func(kind string, body any, query ...string) corpus.Step {
		return corpus.Step{Method: http.MethodPatch, Path: to, Type: "application/" + kind, Query: s.query(query...), Body: encoded(body)}
	}
	switch n := s.IntN(20); {
	case n < 8:
		fresh := pick(s.dice, "a", "b", "c"+number)
		s.add("create", number, corpus.Step{Method: http.MethodPost, Path: WidgetsPath, Query: s.query(), Body: encoded(s.object(fresh))})
	case n < 11:
		o := s.object(name)
		s.add("replace", number, corpus.Step{Method: http.MethodPut, Path: to, Query: s.query(), Body: encoded(o)})
	case n < 14:
		o := s.object(name)
		delete(o, "metadata")
		s.add("merge", number, patch("merge-patch+json", o))
	case n < 15:
		field := "/spec"
		if o, ok := s.spec["properties"].(object); ok && len(o) > 0 && s.one(2) {
			field += "/" + key(s.dice, o)
		}
		s.add("json-patch", number, patch("json-patch+json", []any{pick[any](s.dice,
			object{"op": "add", "path": field, "value": s.generator.Value(s.spec, schemas.Depth)}, object{"op": "remove", "path": field})}))
	case n < 19:
		s.add("apply", number, patch("apply-patch+yaml", s.object(name), pick(s.dice, "fieldManager=m1", "fieldManager=m1", "fieldManager=m2", "fieldManager=m2&force=true")))
	default:
		s.add("get", number, corpus.Step{Method: http.MethodGet, Path: to})
	}
}
