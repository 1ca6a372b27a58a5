package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/reduce"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// Likeness is what the paths of custom types have in common that differ in their names only: thousands of types
// have a few likenesses.
type Likeness struct {
	// Key is the same for types whose likeness is the same.
	Key string
	of  *catalogue.Type
}

// standIn has the names of no type. They occur nowhere else in a document, and each way in which paths
// write one of them differs from all others: as it is, as a part of an operation id, and as the beginning of one.
var standIn = catalogue.Type{Group: "qx-group.qx", Version: "qx-version", Resource: "qx-resources", Kind: "qx-kind", ListKind: "qx-list-kind", Custom: true}

const standInDefinition, standInListDefinition = "qx.definition", "qx.definitions"

// StandIns are the texts in the document of a likeness in whose place those of Names are, in the same order.
func (b *Builder) StandIns() []string {
	return b.texts(&standIn, standInDefinition, standInListDefinition)
}

// texts returns what the paths of a type write that depends on its names.
func (b *Builder) texts(t *catalogue.Type, definition, listDefinition string) []string {
	group, version, kind := b.groupName(t.Group), identifier(t.Version), identifier(t.Kind)
	within := strings.TrimPrefix(identifier("Of"+t.Kind), "Of") // as kind, but it keeps its first letter
	return []string{t.Group, t.Version, t.Resource, t.Kind, definition, listDefinition, group, lower(group), version, lower(version), kind, within}
}

// Alike returns the likeness of each type of a part and the texts of its names, or false if the part is not one of custom
// types only.
func (b *Builder) Alike(p Part) (all []Likeness, names [][]string, ok bool) {
	if _, only := p.Custom(); !only {
		return nil, nil, false
	}
	for _, t := range p.types {
		definition, ok := b.Catalogue.Body(t.Group, t.Version, t.Kind)
		listDefinition, listed := b.Catalogue.Body(t.Group, t.Version, t.ListKind)
		if !ok || !listed {
			return nil, nil, false
		}
		all, names = append(all, Likeness{likenessKey(t), t}), append(names, b.texts(t, definition, listDefinition))
	}
	return all, names, true
}

// likenessKey returns all of a type but its names that its paths show.
func likenessKey(t *catalogue.Type) string {
	var key strings.Builder
	fmt.Fprintf(&key, "%t %t %q %t %t %t", t.Namespaced, t.Going, t.Verbs, t.Kind == t.ListKind, t.Behavior.ReturnDeleted, t.Behavior.SpecFinalizers)
	for _, name := range slices.Sorted(maps.Keys(t.Subresources)) {
		s := t.Subresources[name]
		kind := s.Kind
		if s.Version == "" && kind == t.Kind {
			kind = "" // its own
		}
		fmt.Fprintf(&key, " %q %q %q %q %q %t", name, s.Group, s.Version, kind, s.Verbs, s.Connect)
	}
	return key.String()
}

// V2Like returns a document of version 2 about the paths of a likeness, with stand-ins for the names of the type. It has no
// definitions of the type, nor those that another document has.
func (b *Builder) V2Like(l Likeness, elsewhere map[string]bool) *spec.Swagger {
	t := *l.of
	t.Group, t.Version, t.Resource, t.Kind, t.ListKind = standIn.Group, standIn.Version, standIn.Resource, standIn.Kind, standIn.ListKind
	t.Subresources = maps.Clone(t.Subresources)
	for name, s := range t.Subresources {
		if s.Version == "" && s.Kind == l.of.Kind {
			own := *s
			own.Kind = t.Kind
			t.Subresources[name] = &own
		}
	}
	d := b.second()
	d.elsewhere = elsewhere
	d.standIns = map[kindRef]string{{t.Group, t.Version, t.Kind}: standInDefinition, {t.Group, t.Version, t.ListKind}: standInListDefinition}
	(&describer{document: d, t: &t}).describe()
	return b.withParameters(reduce.Document(d.swagger()))
}

// V2Definitions returns a document of version 2 about no paths, with the definitions of the types of a part and all to
// which they refer, without those that another document has.
func (b *Builder) V2Definitions(p Part, elsewhere map[string]bool) *spec.Swagger {
	d := b.second()
	d.elsewhere = elsewhere
	for _, t := range p.types {
		d.reference(kindRef{t.Group, t.Version, t.Kind})
		d.reference(kindRef{t.Group, t.Version, t.ListKind})
	}
	return reduce.Document(d.swagger())
}
