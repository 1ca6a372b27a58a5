package catalogue

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/resource"
)

// Reserved holds the names in one group that built-in types use, in any version, served or
// not. A custom type must not use them in any version, because a name has the same meaning
// in all versions of a group: for authorization, for ownerReferences, and for clients that
// look up the preferred version of a name. The zero value reserves nothing.
type Reserved struct {
	resources, kinds map[string]bool // in lower case
}

// Resource reports whether a built-in type has this plural, singular or short name. Case is
// ignored.
func (r Reserved) Resource(name string) bool { return r.resources[strings.ToLower(name)] }

// Kind reports whether a built-in type, its list or the body of a subresource has this
// kind. Case is ignored.
func (r Reserved) Kind(name string) bool { return r.kinds[strings.ToLower(name)] }

// reserve collects the names of all built-in types and bodies, by group.
func (c *Catalogue) reserve(types []*Type) map[string]Reserved {
	all := map[string]Reserved{}
	of := func(group string) Reserved {
		r, ok := all[group]
		if !ok {
			r = Reserved{resources: map[string]bool{}, kinds: map[string]bool{}}
			all[group] = r
		}
		return r
	}
	for _, t := range types {
		r := of(t.Group)
		for _, name := range append([]string{t.Resource, t.Singular}, t.ShortNames...) {
			r.resources[strings.ToLower(name)] = true
		}
		r.kinds[strings.ToLower(t.Kind)] = true
		if t.ListKind != "" {
			r.kinds[strings.ToLower(t.ListKind)] = true
		}
		of(t.Key.Group).resources[strings.ToLower(t.Key.Resource)] = true // for groups that share objects
	}
	for id := range c.bodies {
		of(id.Group).kinds[strings.ToLower(id.Kind)] = true
	}
	return all
}

// Reserved returns the names of a group that built-in types use.
func (c *Catalogue) Reserved(group string) Reserved { return c.reserved[group] }

// ReservedDefinition reports whether a built-in schema has this definition name.
func (c *Catalogue) ReservedDefinition(name string) bool {
	return c.base().definitions[name] != nil
}

// BuiltIn reports whether a built-in type, served or not, has this group and plural, or
// stores its objects under them.
func (c *Catalogue) BuiltIn(group, plural string) bool {
	return c.base().stored[resource.GroupResource{Group: group, Resource: plural}] != nil
}

// OfBuiltIn returns the catalogue of only the built-in types, which may be c.
func (c *Catalogue) OfBuiltIn() *Catalogue { return c.base() }

// base returns the catalogue of only the built-in types.
func (c *Catalogue) base() *Catalogue {
	if c.builtIn != nil {
		return c.builtIn
	}
	return c
}

// BuiltInVersion reports whether a group version has built-in types that are served.
func (c *Catalogue) BuiltInVersion(group, version string) bool {
	g, ok := c.base().Group(group)
	return ok && slices.ContainsFunc(g.Versions, func(v GroupVersion) bool { return v.Version == version })
}
