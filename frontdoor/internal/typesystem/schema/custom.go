package schema

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/keywords"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// customTypes are the compiled schemas of custom types, by definition.
type customTypes struct {
	mu    sync.Mutex
	nodes map[string]customRoot
}

type customRoot struct {
	of *catalogue.Definition
	*node
}

// With returns an engine with custom types. It shares the compiled schemas of built-in
// types, and those of custom types whose definitions are the same objects.
func (e *Engine) With(types Types) *Engine {
	before := e.customTypes
	if before == nil {
		before = &customTypes{}
	}
	more := &Engine{definitions: types.Definitions(), vocabulary: e.vocabulary, release: e.release, builtIn: e.base(), customTypes: &customTypes{nodes: map[string]customRoot{}}}
	before.mu.Lock()
	defer before.mu.Unlock()
	for definition, root := range before.nodes {
		if more.definitions[definition] == root.of {
			more.customTypes.nodes[definition] = root
		}
	}
	return more
}

// Only returns an engine with some definitions of custom types, and those of all built-in types.
func (e *Engine) Only(definitions []string) *Engine {
	own := catalogue.Definitions{}
	for _, name := range definitions {
		own[name] = e.definitions[name]
	}
	less := &Engine{definitions: own, vocabulary: e.vocabulary, release: e.release, builtIn: e.base(), customTypes: &customTypes{nodes: map[string]customRoot{}}}
	e.customTypes.mu.Lock()
	defer e.customTypes.mu.Unlock()
	for name := range own {
		if root, ok := e.customTypes.nodes[name]; ok {
			less.customTypes.nodes[name] = root
		}
	}
	return less
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
	of := e.definitions[definition]
	if of == nil || e.builtIn.definitions[definition] != nil {
		return e.builtIn.node(definition)
	}
	e.customTypes.mu.Lock()
	defer e.customTypes.mu.Unlock()
	root, ok := e.customTypes.nodes[definition]
	if !ok {
		root = customRoot{of, e.structural(e.definitions.Get(definition))}
		e.customTypes.nodes[definition] = root
	}
	return root.node
}

// structure holds what only nodes of custom types have. Values of wrong types are reported
// by validation, together with all other errors, and not when an object is prepared.
type structure struct {
	nullable bool
	keep     bool     // unknown fields are kept
	embedded bool     // the value is an object with apiVersion and kind
	initial  any      // default; nil for none
	initials []string // fields with a default
	// initialSize is the length of the default's JSON.
	initialSize int
	keywords    *keywords.Set
	// keys identify the items of a list; atomic is a map whose entries have no identity.
	keys   []string
	atomic bool

	allOf, anyOf, oneOf []*node
	not                 *node
	// besides are the schemas beside references.
	besides []*node
}

// structural compiles the schema of a custom type.
func (e *Engine) structural(s *spec.Schema) *node {
	prefix := vocabulary.K8s().Extension
	own, embedded := s, s.Extensions[prefix+"embedded-resource"] == true
	if embedded { // these are required by Embedded, under another path
		copied := *s
		copied.Required = slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { return name == "apiVersion" || name == "kind" })
		own = &copied
	}
	n := &node{custom: &structure{nullable: s.Nullable, initial: s.Default, keywords: keywords.Compile(own, e.release),
		keep: s.Extensions[prefix+"preserve-unknown-fields"] == true, embedded: embedded}}
	n.custom.identify(s.Extensions, prefix)
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
	e.addItems(n, s)
	n.custom.allOf, n.custom.anyOf, n.custom.oneOf = e.structurals(s.AllOf), e.structurals(s.AnyOf), e.structurals(s.OneOf)
	if s.Not != nil {
		n.custom.not = e.structural(s.Not)
	}
	return n
}

// addItems compiles the schema of the values of a map, or of the items of a list.
func (e *Engine) addItems(n *node, s *spec.Schema) {
	if values := s.AdditionalProperties; values != nil && n.kind == object && len(n.fields) == 0 && (values.Allows || values.Schema != nil) {
		n.kind, n.item = dictionary, fieldless
		if values.Schema != nil {
			n.item = e.structural(values.Schema)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		n.item = e.structural(s.Items.Schema)
		if n.custom.keep {
			n.item.keepItems()
		}
	}
}

// keepItems makes a node keep unknown fields as an item of a list that does, and so on for lists in
// lists. Maps and fields do not inherit it.
func (n *node) keepItems() {
	n.custom.keep = true
	if n.kind == list && n.item != nil {
		n.item.keepItems()
	}
}

var structuralKinds = map[string]kind{"object": object, "array": list, "string": text, "integer": integer, "number": number, "boolean": boolean}

// fieldless is a node that accepts any value and drops all fields of objects, at any depth.
var fieldless = newFieldless()

func newFieldless() *node {
	n := &node{custom: &structure{nullable: true, keywords: keywords.Compile(&spec.Schema{}, release.V136)}}
	n.item = n
	return n
}

// addField compiles a property. A schema beside a reference, which restricts metadata.name
// for example, becomes a condition on the object that has the property.
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
	asWritten := *target
	asWritten.null = nil // objects of custom types show only the nulls that were written
	n.fields[name] = &member{node: &asWritten}
	if len(s.Properties) == 0 {
		return
	}
	beyond := *s
	beyond.Ref = spec.Ref{}
	condition := &node{custom: &structure{keywords: keywords.Compile(&spec.Schema{}, e.release)}}
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

// takesNull reports whether null is a valid value here; otherwise it means absent.
func (n *node) takesNull() bool { return n.custom != nil && n.custom.nullable }

// custom prepares a value of a custom type, in place. Objects and lists where the schema has
// another type have no known fields.
func (p *preparation) custom(n *node, value any, at *field.Path) {
	switch v := value.(type) {
	case map[string]any:
		if n.kind == dictionary {
			p.dictionary(n, v, at)
		} else {
			p.object(n, v, at)
		}
	case []any:
		switch {
		case n.item != nil && n.kind != dictionary:
			p.list(n, v, at)
		case !n.custom.keep && !p.keepsAll:
			p.list(fieldless, v, at)
		}
	}
}

// complete sets the defaults of absent fields, up to the limit of the budget.
func (s *structure) complete(n *node, m map[string]any, b *budget.Budget) {
	for _, name := range s.initials {
		if _, given := m[name]; !given && b.Add(len(name)+n.fields[name].custom.initialSize) {
			m[name] = tree.Copy(n.fields[name].custom.initial)
		}
	}
}

// customValue is custom without regard to what is stored.
func (c *check) customValue(n *node, value, old any, at *field.Path) {
	if c.budget.Over() {
		return
	}
	if !c.embeddedOnly {
		fits := n.custom.keywords.Valid(&c.Errors, value, at)
		c.matched += n.custom.keywords.Matched(value, fits)
		if value == nil { // only its type and the enumeration matter
			return
		}
		if c.combinators(n.custom, value, old, at); !fits {
			return
		}
	}
	switch v := value.(type) {
	case map[string]any:
		if n.custom.embedded {
			c.Embedded(v, at.Bracketed())
		}
		before, _ := old.(map[string]any)
		if n.custom.atomic {
			before = nil
		}
		for name, item := range v {
			if f := n.fields[name]; f != nil {
				parent := at
				switch {
				case !n.custom.embedded:
				case name == "metadata":
					parent = at.Bracketed()
				case item == nil && (name == "apiVersion" || name == "kind"):
					continue // Embedded has said so
				}
				c.value(f.node, item, before[name], &field.Path{Parent: parent, Name: name})
			} else if n.kind == dictionary {
				c.value(n.item, item, before[name], &field.Path{Parent: at, Name: name, InMap: true})
			}
		}
	case []any:
		before := c.before(n.custom, old)
		for i, item := range v {
			if n.item == nil {
				continue
			}
			var stored any
			if before != nil {
				key, _, _ := rules.IdentityOf(item, n.custom.keys, nil)
				stored = before[key]
			}
			c.value(n.item, item, stored, &field.Path{Parent: at, Index: i})
		}
	}
}

// customStatus validates the status of a custom type in a write of the status: alone, as in Kubernetes,
// so messages name fields below it, and errors of the whole have its path.
func (c *check) customStatus(root *node, ch Change) {
	status, reported := ch.Object["status"]
	n := root.fields["status"]
	if n == nil || !reported {
		return
	}
	alone := &check{Check: c.Check, budget: c.budget, ratchets: c.ratchets}
	alone.Errors = field.Errors{}
	alone.custom(n.node, status, ch.Old["status"], nil)
	c.JoinBelow(&field.Path{Name: "status"}, &alone.Errors)
}

// combinators validates a value against allOf, anyOf, oneOf, not and schemas beside
// references.
func (c *check) combinators(s *structure, value, old any, at *field.Path) {
	for _, part := range s.besides {
		c.custom(part, value, old, at)
	}
	c.all(s.allOf, value, old, at)
	if s.anyOf == nil && s.oneOf == nil && s.not == nil {
		return
	}
	where := strconv.Quote(at.String())
	if len(s.anyOf) > 0 {
		if matching, trials := c.matching(s.anyOf, value, nil, at); matching == 0 {
			c.Invalid(noField, "", where+" must validate at least one schema (anyOf)")
			c.take(nearest(trials))
		} else {
			c.matched += fitting(trials).matched
		}
	}
	if len(s.oneOf) > 0 {
		switch matching, trials := c.matching(s.oneOf, value, nil, at); {
		case matching == 0:
			c.Invalid(noField, "", where+" must validate one and only one schema (oneOf). Found none valid")
			c.take(nearest(trials))
		case matching == 1:
			c.matched += fitting(trials).matched
		default:
			c.Invalid(noField, "", where+" must validate one and only one schema (oneOf). Found "+strconv.Itoa(matching)+" valid alternatives")
		}
	}
	if s.not != nil {
		if matching, _ := c.matching([]*node{s.not}, value, nil, at); matching > 0 {
			c.Invalid(noField, "", where+" must not validate the schema (not)")
		}
	}
}

// noField is the path of errors of combinators, as in Kubernetes.
var noField = &field.Path{Name: field.NoPath}

// all validates a value against the schemas of allOf.
func (c *check) all(parts []*node, value, old any, at *field.Path) {
	fits, trials := c.matching(parts, value, old, at)
	for _, trial := range trials {
		c.take(trial)
	}
	if fits == len(parts) {
		return
	}
	none := ""
	if fits == 0 {
		none = ". None validated"
	}
	c.Invalid(noField, "", strconv.Quote(at.String())+" must validate all the schemas (allOf)"+none)
}

// take adds the errors of a trial.
func (c *check) take(trial *check) {
	c.Join(&trial.Errors)
	c.matched += trial.matched
}

// nearest returns the trial with the most matches: its errors are those that Kubernetes reports when no
// schema fits.
func nearest(trials []*check) *check {
	best := trials[0]
	for _, trial := range trials[1:] {
		if trial.matched > best.matched {
			best = trial
		}
	}
	return best
}

// fitting returns the first trial without errors, of which there is one.
func fitting(trials []*check) *check {
	return trials[slices.IndexFunc(trials, func(trial *check) bool { return !trial.Any() })]
}

// matching returns the number of schemas that a value matches, and the errors of each. It
// validates a value once per schema: validating it again for its errors would double the
// work at every level of nested schemas.
func (c *check) matching(nodes []*node, value, old any, at *field.Path) (count int, trials []*check) {
	for _, n := range nodes {
		trial := &check{Check: rules.Check{Vocabulary: c.Vocabulary}, budget: c.budget, ratchets: c.ratchets}
		trial.custom(n, value, old, at)
		if !trial.Any() {
			count++
		}
		trials = append(trials, trial)
	}
	return count, trials
}
