package schema

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/k8stypes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/release"
)

// kind is the type of a value.
type kind uint8

const (
	anything   kind = iota // not checked
	object                 // declared fields
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

// node is one compiled schema. Nodes are immutable once compiled; recursive definitions
// make cycles.
type node struct {
	kind     kind
	bits     int                // of an integer: 32 or 64
	fields   map[string]*member // of an object
	required []string           // fields of an object that must be set
	blank    []string           // fields of an object that are validated even if they are absent
	present  map[string]any     // fields that are added if they are absent, with their value; nil means an empty object
	null     []string           // fields that are null when they are empty
	stated   []string           // strings whose empty value differs from an absent one
	item     *node              // of a dictionary or list
	rules    *kinds.Rules       // of an object; nil for none
	marked   bool               // plain is set
	plain    bool               // validation can skip the value and all below it
	custom   *structure         // of a custom type; nil in built-in ones
}

// member is a field of an object.
type member struct {
	*node
	rules *kinds.Field // nil for none
	// omitEmpty is true if an empty value is equivalent to an absent one and is dropped.
	omitEmpty bool
	// stated is true if an empty string differs from an absent one.
	stated bool
}

// compile returns the node of a definition. The caller holds e.mu.
func (e *Engine) compile(definition string) *node {
	n := e.compileDefinition(definition)
	n.markPlain()
	return n
}

func (e *Engine) compileDefinition(definition string) *node {
	if n := e.compiled[definition]; n != nil {
		return n
	}
	s := e.definitions.Get(definition)
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
	if strings.HasSuffix(short, ".CustomResourceSubresourceStatus") { // an object without fields, not any value
		e.fillObject(n, s, e.rules[short])
		return n
	}
	e.fill(n, s, e.rules[short])
	n.applyShape(k8stypes.Shapes()[short], short, e.release)
	if short == "meta.v1.MicroTime" {
		n.kind = microTime
	}
	return n
}

// applyShape adds to an object's fields what the published Go type implies: empty fields
// that are omitted or null, and structs that are always present. Required numbers and
// booleans of a status default to zero, required strings of a condition to "". Structs with
// required fields are left out when they are absent, apart from those in alwaysPresent.
func (n *node) applyShape(shape k8stypes.Shape, definition string, r release.Release) {
	omitsZero := k8stypes.OmitsZero(r)
	for name := range shape.OmitEmpty {
		if f := n.fields[name]; f != nil {
			f.omitEmpty = true
		}
	}
	status, condition := strings.HasSuffix(definition, "Status"), strings.HasSuffix(definition, "Condition")
	for _, name := range n.required {
		switch f := n.fields[name]; {
		case f == nil:
		case status && zeros[f.kind] != nil:
			n.setPresent(name, zeros[f.kind])
		case condition && f.kind == text:
			n.setPresent(name, "")
		}
	}
	if status && !r.Before(release.V136) { // the Go types are later ones than 1.21
		for name, always := range shape.Always {
			if f := n.fields[name]; f != nil && always && zeros[f.kind] != nil {
				n.setPresent(name, zeros[f.kind])
			}
		}
	}
	for name := range shape.Null {
		if f := n.fields[name]; f != nil && f.kind != object && !(omitsZero && shape.OmitZero[name]) {
			n.null = append(n.null, name)
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
	for name := range shape.Structs {
		if f := n.fields[name]; f != nil && f.kind == object && (f.mayBeEmpty() || slices.Contains(alwaysPresent, name)) {
			n.setPresent(name, nil)
		}
	}
}

// zeros are the defaults of required fields of a status.
var zeros = map[kind]any{integer: int64(0), boolean: false, text: ""}

// alwaysPresent are the structs that are added even if they have required fields, so that
// validation reports these.
var alwaysPresent = []string{"spec", "template", "jobTemplate"}

// setPresent makes a field present even if it is absent in the object.
func (n *node) setPresent(name string, value any) {
	if n.present == nil {
		n.present = map[string]any{}
	}
	n.present[name] = value
}

// mayBeEmpty reports whether an empty object is valid.
func (n *node) mayBeEmpty() bool {
	for _, name := range n.required {
		if _, ok := n.present[name]; !ok {
			return false
		}
	}
	for name, value := range n.present {
		if value == nil && !n.fields[name].mayBeEmpty() {
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

// schema returns the node of a schema inside a definition.
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

// stringKinds maps formats of strings to kinds.
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
				n.setPresent(name, nil)
			}
		}
	}
	n.addSpecAndStatus(r)
	for name, f := range n.fields {
		f.omitEmpty = (f.kind == list || f.kind == dictionary) && !slices.Contains(s.Required, name)
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

// addSpecAndStatus makes spec and status always present in resources: an absent spec is
// validated like an empty one. The rules may except them.
func (n *node) addSpecAndStatus(r *kinds.Rules) {
	if n.fields["metadata"] == nil || n.fields["kind"] == nil {
		return
	}
	for _, name := range []string{"spec", "status"} {
		if f := n.fields[name]; f != nil && f.kind == object && !r.StaysAbsent(name) {
			n.setPresent(name, nil)
		}
	}
}

// markPlain finds the nodes that validation can skip. Recursive nodes are never skipped.
// Nodes that are already marked may be in use concurrently and are not written again.
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

// blank returns the value for the validation of an absent field: the zero value of its
// type.
func (f *member) blank(value any) any {
	switch {
	case value != nil:
		return value
	case f.kind == integer, f.kind == intOrString:
		return int64(0)
	}
	return ""
}
