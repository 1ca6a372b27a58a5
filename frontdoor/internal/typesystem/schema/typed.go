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
		if n.kind == dictionary {
			for key, item := range v {
				below := field.Path{Parent: at, Name: key, IsKey: true}
				p.mistyped(n.item, item, &below)
			}
			return
		}
		if n.kind == object {
			for name, item := range v {
				if f := n.fields[name]; f != nil {
					below := field.Path{Parent: at, Name: name}
					p.mistyped(f.node, item, &below)
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
	why := ""
	switch n.kind {
	case object, dictionary, list:
		why = fmt.Sprintf("expected %s, got %s", n.kind, scalar.Describe(value))
	case quantity:
		_, why = scalar.Quantity(value, false)
	default:
		_, why = n.scalar(value)
	}
	if why != "" {
		p.addWrongType(at, why)
	}
}

// typed reports whether mistyped finds nothing, without the cost of paths.
func (n *node) typed(value any) bool {
	if value == nil || n.custom != nil || n.kind == anything {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			below := n.item
			if f := n.fields[name]; f != nil {
				below = f.node
			}
			if below != nil && !below.typed(item) {
				return false
			}
		}
		return n.kind == object || n.kind == dictionary
	case []any:
		return n.kind == list && !slices.ContainsFunc(v, func(item any) bool { return !n.item.typed(item) })
	}
	why := "it is no object or list"
	switch n.kind {
	case object, dictionary, list:
	case quantity:
		_, why = scalar.Quantity(value, false)
	default:
		_, why = n.scalar(value)
	}
	return why == ""
}
