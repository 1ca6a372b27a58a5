package schema

import (
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/scalar"
)

// mistyped notes values of a wrong type, which defaults that are
// computed from them might take the place of.
func (p *preparation) mistyped(n *node, value any, at *field.Path) {
	if value == nil || n.custom != nil || n.kind == anything || p.budget.Over() {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if n.kind == object || n.kind == dictionary {
			for name, item := range v {
				if part := n.member(name); part != nil {
					below := field.Path{Parent: at, Name: name, IsKey: n.kind == dictionary}
					p.mistyped(part, item, &below)
				}
			}
			return
		}
	case []any:
		if n.kind == list {
			for i, item := range v {
				below := field.Path{Parent: at, Index: i}
				p.mistyped(n.item, item, &below)
			}
			return
		}
	}
	if why := n.wrong(value); why != "" {
		p.addWrongType(at, why)
	}
}

// member returns the node of a member of an object or dictionary; nil for an unknown field.
func (n *node) member(name string) *node {
	if f := n.fields[name]; f != nil {
		return f.node
	}
	return n.item
}

// wrong returns what is wrong with a value that is not walked into; "" for nothing.
func (n *node) wrong(value any) (why string) {
	switch n.kind {
	case object, dictionary, list:
		return fmt.Sprintf("expected %s, got %s", n.kind, scalar.Describe(value))
	case quantity:
		_, why = scalar.Quantity(value, false)
	default:
		_, why = n.scalar(value)
	}
	return why
}

// typed reports whether mistyped finds nothing, without the cost of paths.
func (n *node) typed(value any) bool {
	if value == nil || n.custom != nil || n.kind == anything {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			if part := n.member(name); part != nil && !part.typed(item) {
				return false
			}
		}
		return n.kind == object || n.kind == dictionary
	case []any:
		return n.kind == list && !slices.ContainsFunc(v, func(item any) bool { return !n.item.typed(item) })
	}
	return n.wrong(value) == ""
}
