package catalogue

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// With returns a catalogue with custom types. It shares all built-in types with c, which is
// not modified. A surface is added completely or not at all: it is skipped if one of its
// types has a name that a built-in type or an earlier surface of the same group uses, in
// any version.
func (c *Catalogue) With(customTypes ...Surface) *Catalogue {
	more := &Catalogue{
		release: c.release, builtIn: c.base(), reserved: c.reserved, order: c.order,
		types: map[typeID]*Type{}, kinds: map[kindID]*Type{},
		stored: maps.Clone(c.stored), definitions: maps.Clone(c.definitions), bodies: maps.Clone(c.bodies),
	}
	var served []*Type
	for _, g := range c.groups {
		for _, v := range g.Versions {
			served = append(served, v.Types...)
		}
	}
	more.converter = &converter{builtIn: c.base(), custom: map[schema.GroupVersionKind]func() (managedfields.TypeConverter, error){}}
	taken := map[claim]bool{}
	for _, custom := range customTypes {
		if !c.accepts(custom, taken) {
			continue
		}
		more.define(custom.Definitions)
		for _, t := range custom.Types {
			served = append(served, t)
			more.stored[t.Key] = t.Stored
			more.converter.custom[schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}] = more.converterOf(t.Definition, t.Schema)
		}
	}
	more.index(served)
	return more
}

// define adds the schemas of an accepted surface.
func (c *Catalogue) define(definitions Definitions) {
	for name, d := range definitions {
		c.definitions[name] = d
		if c.bodies[d.kind] == "" {
			c.bodies[d.kind] = name
		}
	}
}

// claim is a name in a group that a surface uses, as a resource or as a kind.
type claim struct {
	group, name string
	kind        bool
}

// accepts reports whether no built-in type and no earlier surface uses a name of the
// surface. If so, it adds the surface's names to taken.
func (c *Catalogue) accepts(custom Surface, taken map[claim]bool) bool {
	claims := map[claim]bool{}
	for _, t := range custom.Types {
		resources := append([]string{t.Resource, t.Singular}, t.ShortNames...)
		reserved := c.Reserved(t.Group)
		if !t.Key.Custom || slices.ContainsFunc(resources, reserved.Resource) || reserved.Kind(t.Kind) || reserved.Kind(t.ListKind) {
			return false
		}
		claims[claim{t.Group, t.Resource, false}], claims[claim{t.Group, t.Kind, true}] = true, true
	}
	for name := range custom.Definitions {
		if c.ReservedDefinition(name) {
			return false
		}
	}
	for name := range claims {
		if taken[name] {
			return false
		}
	}
	maps.Copy(taken, claims)
	return true
}
