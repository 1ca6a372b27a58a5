package schema

import (
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/keywords"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// customTypes are the compiled schemas of custom types, by definition.
type customTypes struct {
	mu    sync.Mutex
	nodes map[string]customRoot
}

type customRoot struct {
	schema *spec.Schema
	*node
}

// With returns an engine that knows custom types too. It shares what is compiled
// of the built-in ones, and of custom types whose schemas are the same.
func (e *Engine) With(types Types) *Engine {
	before := e.customTypes
	if before == nil {
		before = &customTypes{}
	}
	more := &Engine{definitions: types.Definitions(), vocabulary: e.vocabulary, builtIn: e.base(), customTypes: &customTypes{nodes: map[string]customRoot{}}}
	before.mu.Lock()
	defer before.mu.Unlock()
	for definition, root := range before.nodes {
		if more.definitions[definition] == root.schema {
			more.customTypes.nodes[definition] = root
		}
	}
	return more
}

// base returns the engine of the built-in types.
func (e *Engine) base() *Engine {
	if e.builtIn != nil {
		return e.builtIn
	}
	return e
}

// customNode returns the compiled definition in an engine with custom types.
func (e *Engine) customNode(definition string) *node {
	s := e.definitions[definition]
	if s == nil || e.builtIn.definitions[definition] != nil {
		return e.builtIn.node(definition)
	}
	e.customTypes.mu.Lock()
	defer e.customTypes.mu.Unlock()
	root, ok := e.customTypes.nodes[definition]
	if !ok {
		root = customRoot{s, e.structural(s)}
		e.customTypes.nodes[definition] = root
	}
	return root.node
}

// structure is what only the nodes of custom types have. Values of a wrong type are
// not refused when an object is prepared but reported with all other faults.
type structure struct {
	nullable bool
	keep     bool     // unknown fields stay
	embedded bool     // the value is an object with a kind of its own
	initial  any      // stands for a missing value; nil for none
	initials []string // fields with an initial value
	// initialSize is the length of initial's JSON.
	initialSize int
	keywords    *keywords.Set

	allOf, anyOf, oneOf []*node
	not                 *node
	// besides is what references say beyond their targets.
	besides []*node
}

// structural compiles the schema of a custom type.
func (e *Engine) structural(s *spec.Schema) *node {
	prefix := vocabulary.K8s().Extension
	n := &node{custom: &structure{nullable: s.Nullable, initial: s.Default, keywords: keywords.Compile(s),
		keep: s.Extensions[prefix+"preserve-unknown-fields"] == true, embedded: s.Extensions[prefix+"embedded-resource"] == true}}
	if s.Default != nil {
		n.custom.initialSize = len(field.Display(s.Default))
	}
	switch {
	case s.Extensions[prefix+"int-or-string"] == true:
		n.kind = intOrString
	case len(s.Type) > 0:
		n.kind = structuralKinds[s.Type[0]]
	}
	for name := range s.Properties {
		property := s.Properties[name]
		e.addField(n, name, &property)
	}
	if values := s.AdditionalProperties; values != nil && n.kind == object && len(n.fields) == 0 && (values.Allows || values.Schema != nil) {
		n.kind, n.item = dictionary, emptyNode()
		if values.Schema != nil {
			n.item = e.structural(values.Schema)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		n.item = e.structural(s.Items.Schema)
	}
	n.custom.allOf, n.custom.anyOf, n.custom.oneOf = e.structurals(s.AllOf), e.structurals(s.AnyOf), e.structurals(s.OneOf)
	if s.Not != nil {
		n.custom.not = e.structural(s.Not)
	}
	return n
}

var structuralKinds = map[string]kind{"object": object, "array": list, "string": text, "integer": integer, "number": number, "boolean": boolean}

// emptyNode takes any value, and keeps no field of an object.
func emptyNode() *node {
	n := &node{custom: &structure{nullable: true, keywords: keywords.Compile(&spec.Schema{})}}
	n.item = n
	return n
}

// addField compiles a property. What a reference says beyond its target, as in a
// rule for metadata.name, is a condition on the object around it.
func (e *Engine) addField(n *node, name string, s *spec.Schema) {
	if n.fields == nil {
		n.fields = map[string]*member{}
	}
	ref := s.Ref.String()
	if ref == "" {
		n.fields[name] = &member{node: e.structural(s)}
		if s.Default != nil {
			n.custom.initials = append(n.custom.initials, name)
		}
		return
	}
	target := e.base().node(ref[strings.LastIndex(ref, "/")+1:])
	if target == nil {
		target = &node{}
	}
	n.fields[name] = &member{node: target}
	if len(s.Properties) == 0 {
		return
	}
	beyond := *s
	beyond.Ref = spec.Ref{}
	condition := &node{custom: &structure{keywords: keywords.Compile(&spec.Schema{})}}
	condition.fields = map[string]*member{name: {node: e.structural(&beyond)}}
	n.custom.besides = append(n.custom.besides, condition)
}

func (e *Engine) structurals(parts []spec.Schema) []*node {
	var nodes []*node
	for i := range parts {
		nodes = append(nodes, e.structural(&parts[i]))
	}
	return nodes
}

// takesNull reports whether null is a value here, and not the absence of one.
func (n *node) takesNull() bool { return n.custom != nil && n.custom.nullable }

// custom prepares a value of a custom type, in place.
func (p *preparation) custom(n *node, value any, at *field.Path) {
	switch v := value.(type) {
	case map[string]any:
		switch n.kind {
		case dictionary:
			p.dictionary(n, v, at)
		case object, anything:
			p.object(n, v, at)
		}
	case []any:
		if n.item != nil && (n.kind == list || n.kind == anything) {
			p.list(n, v, at)
		}
	}
}

// complete fills in the fields that an object does not have, as far as the budget goes.
func (s *structure) complete(n *node, m map[string]any, b *budget.Budget) {
	for _, name := range s.initials {
		if _, given := m[name]; !given && b.Add(len(name)+n.fields[name].custom.initialSize) {
			m[name] = tree.Copy(n.fields[name].custom.initial)
		}
	}
}

// custom checks a value of a custom type, and what stands below it.
func (c *check) custom(n *node, value, old any, at *field.Path) {
	if c.budget.Over() {
		return
	}
	if !n.custom.keywords.Fits(&c.Errors, value, at) {
		return
	}
	n.custom.keywords.Check(&c.Errors, value, at)
	c.combinators(n.custom, value, at)
	switch v := value.(type) {
	case map[string]any:
		if n.custom.embedded {
			c.embedded(v, at)
		}
		before, _ := old.(map[string]any)
		for name, item := range v {
			if f := n.fields[name]; f != nil {
				c.value(f.node, item, before[name], &field.Path{Parent: at, Name: name})
			} else if n.kind == dictionary {
				c.value(n.item, item, before[name], &field.Path{Parent: at, Name: name})
			}
		}
	case []any:
		for i, item := range v {
			if n.item != nil {
				c.value(n.item, item, nil, &field.Path{Parent: at, Index: i})
			}
		}
	}
}

// embedded checks that an object within another one says what it is.
func (c *check) embedded(m map[string]any, at *field.Path) {
	for _, name := range []string{"apiVersion", "kind"} {
		if value, given := m[name]; !given {
			c.Required(at.Field(name), "")
		} else if value == "" {
			c.Invalid(at.Field(name), value, "must not be empty")
		}
	}
	if version, ok := m["apiVersion"].(string); ok && strings.Count(version, "/") > 1 {
		c.Invalid(at.Field("apiVersion"), version, "unexpected GroupVersion string: "+version)
	}
	if kind, ok := m["kind"].(string); ok && kind != "" {
		for _, problem := range validation.IsDNS1035Label(strings.ToLower(kind)) {
			c.Invalid(at.Field("kind"), kind, "may have mixed case, but should otherwise match: "+problem)
		}
	}
}

// combinators checks a value against the schemas that are joined to its own.
func (c *check) combinators(s *structure, value any, at *field.Path) {
	for _, part := range s.besides {
		c.custom(part, value, nil, at)
	}
	c.all(s.allOf, value, at)
	if s.anyOf == nil && s.oneOf == nil && s.not == nil {
		return
	}
	where := strconv.Quote(at.String())
	if len(s.anyOf) > 0 {
		if fitting, trials := c.fitting(s.anyOf, value, at); fitting == 0 {
			c.Invalid(nowhere, "", where+" must validate at least one schema (anyOf)")
			c.Join(&trials[0].Errors)
		}
	}
	if len(s.oneOf) > 0 {
		switch fitting, trials := c.fitting(s.oneOf, value, at); {
		case fitting == 0:
			c.Invalid(nowhere, "", where+" must validate one and only one schema (oneOf). Found none valid")
			c.Join(&trials[0].Errors)
		case fitting > 1:
			c.Invalid(nowhere, "", where+" must validate one and only one schema (oneOf). Found "+strconv.Itoa(fitting)+" valid alternatives")
		}
	}
	if s.not != nil {
		if fitting, _ := c.fitting([]*node{s.not}, value, at); fitting > 0 {
			c.Invalid(nowhere, "", where+" must not validate the schema (not)")
		}
	}
}

// nowhere is where clients are used to find what is wrong with a value as a whole.
var nowhere = &field.Path{Name: "<nil>"}

// all checks a value against schemas of which it must fit each.
func (c *check) all(parts []*node, value any, at *field.Path) {
	fits, trials := c.fitting(parts, value, at)
	if fits == len(parts) {
		return
	}
	for _, trial := range trials {
		c.Join(&trial.Errors)
	}
	none := ""
	if fits == 0 {
		none = ". None validated"
	}
	c.Invalid(nowhere, "", strconv.Quote(at.String())+" must validate all the schemas (allOf)"+none)
}

// fitting counts the schemas that a value fits, and returns what each of them has
// against it. A value is checked once for each: checking it again for its errors would
// double the work at every level of schemas within schemas.
func (c *check) fitting(nodes []*node, value any, at *field.Path) (count int, trials []*check) {
	for _, n := range nodes {
		trial := &check{Check: rules.Check{Vocabulary: c.Vocabulary}, budget: c.budget}
		trial.custom(n, value, nil, at)
		if !trial.Any() {
			count++
		}
		trials = append(trials, trial)
	}
	return count, trials
}
