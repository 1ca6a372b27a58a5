package schema

import (
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// check is one walk over an object.
type check struct {
	rules.Check
	budget *budget.Budget
	// ratchets drops errors of values that stay as they are stored. changed is set when a
	// value with errors, within the one that is validated, is known to differ.
	ratchets, changed bool
	// matched counts as keywords.Set.Matched, for the schemas of combinators.
	matched int
	// embeddedOnly leaves out all but what every embedded resource has.
	embeddedOnly bool
}

// object validates an object with declared fields. old is nil for a create, and where the
// stored object has no value.
func (c *check) object(n *node, m, old map[string]any, at *field.Path) {
	for _, name := range n.required {
		if f := n.fields[name]; rules.Empty(m[name]) || f.rules.None(m[name]) {
			c.Required(f.rules.Place(at, name), f.rules.Why())
		}
	}
	for _, name := range n.blank {
		if f := n.fields[name]; rules.Empty(m[name]) {
			f.rules.CheckScalar(&c.Check, f.blank(m[name]), f.rules.Place(at, name))
		}
	}
	surplus := n.rules.Surplus(m)
	own := field.Path{Parent: at} // one for all fields, as in preparation
	for name, value := range m {
		f := n.fields[name]
		if f == nil || f.rules == nil && f.plain || slices.Contains(surplus, name) || old != nil && f.rules != nil && f.rules.AtCreation {
			continue
		}
		below := &own
		if own.Name = name; f.rules != nil && f.rules.At != "" {
			below = f.rules.Place(at, name)
		}
		if at == nil && name == "status" {
			c.reported(f.node, value, old[name], below)
			continue
		}
		switch {
		case f.rules == nil || rules.Empty(value) && slices.Contains(n.required, name):
		case f.kind == intOrString, f.stated && value == "" && !f.rules.NotEmpty:
			f.rules.CheckScalar(&c.Check, value, below) // "" is not a valid percentage, or is a value like any other
		default:
			f.rules.Check(&c.Check, value, below)
		}
		if !f.plain && (f.rules == nil || !f.rules.Unchecked) {
			c.value(f.node, value, old[name], below)
		}
	}
	if n.rules != nil {
		c.ruleset(n, m, old, at)
	}
}

// reported validates the status in a write of the status. Only the rules of the status
// itself apply, not those of values below it: controllers are trusted to report them.
func (c *check) reported(n *node, value, old any, at *field.Path) {
	status, ok := value.(map[string]any)
	if !ok || n.rules == nil || c.Subresource != "status" {
		return
	}
	for name, r := range n.rules.Fields {
		if given, ok := status[name]; ok {
			r.Check(&c.Check, given, at.Field(name))
		}
	}
	before, _ := old.(map[string]any)
	c.ruleset(n, status, before, at)
}

// value validates an object, map or list.
func (c *check) value(n *node, value, old any, at *field.Path) {
	if c.budget.Over() {
		return
	}
	if n.custom != nil {
		c.custom(n, value, old, at)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		before, _ := old.(map[string]any)
		if n.kind == object {
			c.object(n, v, before, at)
			return
		}
		if n.kind != dictionary {
			return
		}
		below := field.Path{Parent: at, IsKey: true}
		for key, item := range v {
			below.Name = key
			c.value(n.item, item, before[key], &below)
		}
	case []any:
		if n.kind != list || n.item.plain {
			return
		}
		below := field.Path{Parent: at}
		for i, item := range v {
			below.Index = i
			c.value(n.item, item, nil, &below)
		}
	}
}

// ruleset validates an object against the rules that concern several fields.
func (c *check) ruleset(n *node, m, old map[string]any, at *field.Path) {
	r := n.rules
	r.CheckUnions(&c.Check, m, at)
	for name, why := range r.Changed(m, old) {
		c.Invalid(at.Field(name), n.shown(name, m), why)
	}
	for _, compare := range r.CheckFuncs {
		compare(&c.Check, m, old, at)
	}
}

// shown returns the value of a field in messages: an absent text is empty unless the
// published type has a pointer.
func (n *node) shown(name string, m map[string]any) any {
	if f := n.fields[name]; m[name] == nil && f != nil && f.kind == text && !f.stated {
		return ""
	}
	return m[name]
}
