package crd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/tree"
)

// Names are the names of a definition's types.
type Names struct {
	Plural, Singular, Kind, ListKind string
	ShortNames, Categories           []string
}

func namesOf(m map[string]any) Names {
	return Names{Plural: tree.Text(m, "plural"), Singular: tree.Text(m, "singular"), Kind: tree.Text(m, "kind"), ListKind: tree.Text(m, "listKind"),
		ShortNames: tree.Texts(m, "shortNames"), Categories: tree.Texts(m, "categories")}
}

// completed returns the names with the defaults that follow from the kind.
func (n Names) completed() Names {
	if n.Singular == "" {
		n.Singular = strings.ToLower(n.Kind)
	}
	if n.ListKind == "" && n.Kind != "" {
		n.ListKind = n.Kind + "List"
	}
	return n
}

// object returns the names in the form of a status.
func (n Names) object() map[string]any {
	m := map[string]any{"plural": n.Plural, "kind": n.Kind}
	for name, value := range map[string]string{"singular": n.Singular, "listKind": n.ListKind} {
		if value != "" {
			m[name] = value
		}
	}
	for name, values := range map[string][]string{"shortNames": n.ShortNames, "categories": n.Categories} {
		if len(values) > 0 {
			m[name] = tree.ListOf(values)
		}
	}
	return m
}

// claimed is a name that a definition requests, and its field.
type claimed struct {
	field *field.Path
	name  string
}

// builtIn returns the names requested by a spec, in any version, that built-in types of its
// group use.
func builtIn(spec map[string]any, types *catalogue.Catalogue) []claimed {
	group, names, where := tree.Text(spec, "group"), namesOf(tree.Child(spec, "names")).completed(), at("names")
	reserved := types.Reserved(group)
	var found []claimed
	note := func(isReserved bool, name string, field *field.Path) {
		if name != "" && isReserved {
			found = append(found, claimed{field, name})
		}
	}
	note(reserved.Resource(names.Plural), names.Plural, where.Field("plural"))
	note(reserved.Resource(names.Singular), names.Singular, where.Field("singular"))
	for i, name := range names.ShortNames {
		note(reserved.Resource(name), name, where.Field("shortNames").Item(i))
	}
	schema := func(kind string) bool { // whether the definition name is that of a built-in schema, even of another group
		return slices.ContainsFunc(children(spec, "versions"), func(version map[string]any) bool {
			t := &catalogue.Type{Group: group, Version: tree.Text(version, "name")}
			return types.ReservedDefinition(definitionName(t, kind))
		})
	}
	note(reserved.Kind(names.Kind) || schema(names.Kind), names.Kind, where.Field("kind"))
	note(reserved.Kind(names.ListKind) || schema(names.ListKind), names.ListKind, where.Field("listKind"))
	return found
}

// reservedNames checks that no built-in type uses the names. An old definition that already
// had such a name keeps it and is not served, so that it can still be updated and deleted.
func (c *check) reservedNames() {
	if c.old != nil && tree.Text(c.spec, "group") != tree.Text(c.oldSpec, "group") {
		return // refused as such
	}
	before := map[[2]string]bool{}
	for _, b := range builtIn(c.oldSpec, c.Types) {
		before[[2]string{b.name, b.field.String()}] = true
	}
	for _, claim := range builtIn(c.spec, c.Types) {
		if !before[[2]string{claim.name, claim.field.String()}] {
			c.Invalid(claim.field, claim.name, strconv.Quote(claim.name)+" is already in use by a built-in type of this group")
		}
	}
}

// conflict is a requested name that is in use.
type conflict struct{ reason, message string }

// inUse are the names in use: of resources, and of kinds.
type inUse struct{ resources, kinds map[string]bool }

// taken returns the names that the definition must not be given, because other definitions
// of its group or built-in types use them.
func (c Claims) taken(name string, spec map[string]any, reserved []claimed) inUse {
	used := inUse{map[string]bool{}, map[string]bool{}}
	for _, other := range c.Others {
		if other.Group != tree.Text(spec, "group") || other.Name == name {
			continue
		}
		for _, name := range append([]string{other.accepted.Plural, other.accepted.Singular}, other.accepted.ShortNames...) {
			used.resources[name] = true
		}
		used.kinds[other.accepted.Kind], used.kinds[other.accepted.ListKind] = true, true
	}
	for _, r := range reserved {
		if r.field.Name == "kind" || r.field.Name == "listKind" {
			used.kinds[r.name] = true
		} else {
			used.resources[r.name] = true
		}
	}
	return used
}

// accept returns the names that a definition is given: each requested name that is not in
// use, else the one that it had before. It also returns the conflicts.
func accept(requested, had Names, used inUse) (Names, []conflict) {
	var conflicts []conflict
	claim := func(what, name, before string, used map[string]bool) string {
		if name == "" || name == before || !used[name] {
			return name
		}
		conflicts = append(conflicts, conflict{what + "Conflict", strconv.Quote(name) + " is already in use"})
		return before
	}
	given := Names{Categories: requested.Categories, ShortNames: requested.ShortNames}
	given.Plural = claim("Plural", requested.Plural, had.Plural, used.resources)
	given.Singular = claim("Singular", requested.Singular, had.Singular, used.resources)
	var inUse []string
	settled := map[string]bool{}
	for _, name := range had.ShortNames {
		settled[name] = true
	}
	for _, name := range requested.ShortNames {
		if used.resources[name] && !settled[name] {
			settled[name] = true
			inUse = append(inUse, strconv.Quote(name)+" is already in use")
		}
	}
	if len(inUse) > 0 {
		conflicts, given.ShortNames = append(conflicts, conflict{"ShortNamesConflict", joinMessages(inUse)}), had.ShortNames
	}
	given.Kind = claim("Kind", requested.Kind, had.Kind, used.kinds)
	given.ListKind = claim("ListKind", requested.ListKind, had.ListKind, used.kinds)
	return given, conflicts
}
