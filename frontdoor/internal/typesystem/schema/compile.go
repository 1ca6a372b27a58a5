package schema

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/k8stypes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// kind is the shape that a value must have.
type kind uint8

const (
	anything   kind = iota // kept as it is
	object                 // known fields
	dictionary             // any keys, values of one kind
	list
	text
	integer
	number
	boolean
	intOrString
	quantity
	timestamp
	microTime // a timestamp with microseconds
	binary    // base64
)

// node is one compiled schema. Nodes are immutable once compiled, and definitions
// that contain themselves make cycles of them.
type node struct {
	kind     kind
	bits     int                // of an integer: 32 or 64
	fields   map[string]*member // of an object
	required []string           // fields of an object that must be given
	blank    []string           // fields of an object that are checked even when left out
	standing map[string]any     // fields that exist even when left out, and as what; nil for an object
	shown    []string           // fields that are null when they are empty
	stated   []string           // texts whose empty value is not the same as none
	item     *node              // of a dictionary or list
	rules    *kinds.Rules       // of an object; nil when there are none
	marked   bool               // plain is known
	plain    bool               // nothing below can be invalid
	custom   *structure         // of a custom type; nil in built-in ones
}

// member is a field of an object.
type member struct {
	*node
	rules *kinds.Field // nil when there are none
	// sparing is true when an empty value is the same as none, and not kept.
	sparing bool
	// stated is true when an empty text is not the same as none.
	stated bool
}

// compile returns the node of a definition. The engine's lock is held.
func (e *Engine) compile(definition string) *node {
	n := e.compileDefinition(definition)
	n.markPlain()
	return n
}

func (e *Engine) compileDefinition(definition string) *node {
	if n := e.compiled[definition]; n != nil {
		return n
	}
	s := e.definitions[definition]
	if s == nil {
		return &node{}
	}
	n := &node{}
	e.compiled[definition] = n
	short := shortName(definition)
	if short == "api.resource.Quantity" {
		n.kind = quantity
		return n
	}
	e.fill(n, s, e.rules[short])
	n.follow(k8stypes.Shapes()[short], short)
	if short == "meta.v1.MicroTime" {
		n.kind = microTime
	}
	return n
}

// follow makes an object's fields those of the published type. A status counts from
// zero; parts of it that say something from the beginning, if they are there, are
// left out.
func (n *node) follow(shape k8stypes.Shape, definition string) {
	for name := range shape.Fleeting {
		if f := n.fields[name]; f != nil {
			f.sparing = true
		}
	}
	status, condition := strings.HasSuffix(definition, "Status"), strings.HasSuffix(definition, "Condition")
	for _, name := range n.required {
		switch f := n.fields[name]; {
		case f == nil:
		case status && zeros[f.kind] != nil:
			n.stand(name, zeros[f.kind])
		case condition && f.kind == text:
			n.stand(name, "")
		}
	}
	for name := range shape.Shown {
		if f := n.fields[name]; f != nil && f.kind != object {
			n.shown = append(n.shown, name)
		}
	}
	for name, f := range n.fields {
		if f.kind == quantity { // an empty text is none
			n.stated = append(n.stated, name)
		}
	}
	for name := range shape.Stated {
		if f := n.fields[name]; f != nil && (f.kind == text || f.kind == intOrString) && (f.rules == nil || f.rules.Stated == nil || *f.rules.Stated) {
			f.stated, n.stated = true, append(n.stated, name)
		}
	}
	for name := range shape.Standing {
		if f := n.fields[name]; f != nil && f.kind == object && (f.bare() || slices.Contains(wanted, name)) {
			n.stand(name, nil)
		}
	}
}

// zeros are what a status counts from.
var zeros = map[kind]any{integer: int64(0), boolean: false}

// wanted are the parts that every object has to have something in.
var wanted = []string{"spec", "template", "jobTemplate"}

// stand makes a field exist even when it is left out.
func (n *node) stand(name string, value any) {
	if n.standing == nil {
		n.standing = map[string]any{}
	}
	n.standing[name] = value
}

// bare reports whether an object may say nothing.
func (n *node) bare() bool {
	for _, name := range n.required {
		if _, stands := n.standing[name]; !stands {
			return false
		}
	}
	for name, value := range n.standing {
		if value == nil && !n.fields[name].bare() {
			return false
		}
	}
	return true
}

// shortName returns the last three parts of a definition's name, which are the
// same in every vocabulary: apps.v1.Deployment.
func shortName(definition string) string {
	parts := strings.Split(definition, ".")
	return strings.Join(parts[max(0, len(parts)-3):], ".")
}

// schema returns the node of a schema that stands inside a definition.
func (e *Engine) schema(s *spec.Schema) *node {
	if s == nil {
		return &node{}
	}
	ref := s.Ref.String()
	if ref == "" && len(s.AllOf) == 1 {
		ref = s.AllOf[0].Ref.String()
	}
	if ref != "" {
		return e.compileDefinition(ref[strings.LastIndex(ref, "/")+1:])
	}
	n := &node{}
	e.fill(n, s, nil)
	return n
}

// fill compiles a schema into a node.
func (e *Engine) fill(n *node, s *spec.Schema, r *kinds.Rules) {
	switch {
	case len(s.Properties) > 0:
		e.fillObject(n, s, r)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		n.kind, n.item = dictionary, e.schema(s.AdditionalProperties.Schema)
	case s.Type.Contains("array"):
		n.kind = list
		if s.Items != nil {
			n.item = e.schema(s.Items.Schema)
		} else {
			n.item = &node{}
		}
	case s.Type.Contains("string"):
		n.kind = stringKinds[s.Format]
		if n.kind == anything {
			n.kind = text
		}
	case s.Type.Contains("integer"):
		n.kind, n.bits = integer, 64
		if s.Format == "int32" {
			n.bits = 32
		}
	case s.Type.Contains("number"):
		n.kind = number
	case s.Type.Contains("boolean"):
		n.kind = boolean
	}
}

// stringKinds are the formats of strings that have a kind of their own.
var stringKinds = map[string]kind{"int-or-string": intOrString, "date-time": timestamp, "byte": binary}

func (e *Engine) fillObject(n *node, s *spec.Schema, r *kinds.Rules) {
	n.kind, n.rules = object, r
	n.fields = make(map[string]*member, len(s.Properties))
	for name := range s.Properties {
		property := s.Properties[name]
		n.fields[name] = &member{node: e.schema(&property)}
	}
	for _, name := range s.Required {
		if f := n.fields[name]; f != nil && !r.IsOptional(name) && !r.IsBlank(name) {
			n.required = append(n.required, name)
			if f.kind == object && !r.IsRequired(name) {
				n.stand(name, nil)
			}
		}
	}
	n.fillHalves()
	for name, f := range n.fields {
		// An empty list of owners asks to forget them: who tracks fields has to see it.
		f.sparing = (f.kind == list || f.kind == dictionary) && !slices.Contains(s.Required, name) && name != "managedFields"
	}
	if r == nil {
		return
	}
	for _, name := range r.Required {
		if !slices.Contains(n.required, name) {
			n.required = append(n.required, name)
		}
	}
	for name, rules := range r.Fields {
		if f := n.fields[name]; f != nil {
			f.rules = rules
			if rules.Blank {
				n.blank = append(n.blank, name)
			}
		}
	}
}

// fillHalves notes that the two halves of a resource are always there, however
// little they say: a client that leaves out the spec has it checked as an empty one.
func (n *node) fillHalves() {
	if n.fields["metadata"] == nil || n.fields["kind"] == nil {
		return
	}
	for _, name := range []string{"spec", "status"} {
		if f := n.fields[name]; f != nil && f.kind == object {
			n.stand(name, nil)
		}
	}
}

// markPlain finds the nodes that validation need not enter. A node that contains
// itself is entered. Marked nodes are in use already and are not written again.
func (n *node) markPlain() bool {
	if n.marked {
		return n.plain
	}
	n.marked = true
	plain := n.rules == nil && len(n.required) == 0
	for _, f := range n.fields {
		if below := f.node.markPlain(); !below || f.rules != nil {
			plain = false
		}
	}
	if n.item != nil && !n.item.markPlain() {
		plain = false
	}
	n.plain = plain
	return plain
}

// blank is what an empty value is checked as; nil is one that is left out.
func (f *member) blank(value any) any {
	switch {
	case value != nil:
		return value
	case f.kind == integer, f.kind == intOrString:
		return int64(0)
	}
	return ""
}
