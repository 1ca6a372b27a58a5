package kinds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// alikeSince is the first release in which beta versions are optional, and take their rules from
// the version that is served.
const alikeSince = "1.24"

// In returns the rules of a release by definition: those of the files with the changes of
// this release and of earlier ones. It does not modify the set.
func (s *Set) In(r release.Release) map[string]*Rules {
	found := make(map[string]*Rules, len(s.Definitions))
	for name, rules := range s.Definitions {
		found[name] = rules.in(r)
	}
	if before(r, alikeSince) {
		return found // the files have the rules of all its versions
	}
	for _, group := range s.Groups {
		short, _, _ := strings.Cut(group.Group, ".")
		for version, same := range group.Alike {
			for name := range s.Definitions {
				kind, ok := strings.CutPrefix(name, short+"."+same+".")
				if alike := short + "." + version + "." + kind; ok && found[alike] == nil {
					found[alike] = found[name]
				}
			}
		}
	}
	return found
}

// in returns the rules in a release: the rules themselves if no change applies.
func (r *Rules) in(of release.Release) *Rules {
	changed := r
	for _, name := range slices.SortedFunc(maps.Keys(r.Since), byRelease) {
		if before(of, name) {
			break
		}
		if changed == r {
			copied := *r
			changed = &copied
		}
		changed.change(r.Since[name])
	}
	return changed
}

// byRelease compares the names of releases by age.
func byRelease(a, b string) int {
	older, _ := release.Of(a)
	newer, _ := release.Of(b)
	return cmp.Compare(older.Minor(), newer.Minor())
}

// change adds the rules of a later release. Rules of a field replace all earlier ones of
// the field; a field that becomes required is no longer optional and the other way round.
func (r *Rules) change(later *Rules) {
	r.Defaults = merged(r.Defaults, later.Defaults)
	r.DefaultsWhen = slices.Concat(later.DefaultsWhen, r.DefaultsWhen)
	r.DeriveFuncs = slices.Concat(still(r.DeriveFuncs, r.Derive, later.Former), later.DeriveFuncs)
	r.CheckFuncs = slices.Concat(still(r.CheckFuncs, r.Checks, later.Former), later.CheckFuncs)
	r.Derive, r.Checks = append(without(r.Derive, later.Former), later.Derive...), append(without(r.Checks, later.Former), later.Checks...)
	r.Required = append(without(r.Required, later.Optional), later.Required...)
	r.Optional = append(without(r.Optional, later.Required), later.Optional...)
	r.Fixed = slices.Concat(without(r.Fixed, later.Mutable), later.Fixed)
	r.Once = slices.Concat(without(r.Once, later.Mutable), later.Once)
	r.OneOf, r.AtMostOne = slices.Concat(r.OneOf, later.OneOf), slices.Concat(r.AtMostOne, later.AtMostOne)
	fields := maps.Clone(r.Fields)
	if fields == nil {
		fields = map[string]*Field{}
	}
	maps.Copy(fields, later.Fields)
	r.Fields = fields
	if later.Choice != nil {
		r.Choice = later.Choice
	}
}

// merged returns the defaults of both, of which the later ones take precedence. null
// removes a default.
func merged(first, later map[string]any) map[string]any {
	if len(later) == 0 {
		return first
	}
	all := map[string]any{}
	for name, value := range first {
		all[name] = tree.Copy(value)
	}
	for name, value := range later {
		below, isObject := value.(map[string]any)
		if had, ok := all[name].(map[string]any); ok && isObject {
			value = merged(had, below)
		}
		if value == nil {
			delete(all, name)
			continue
		}
		all[name] = value
	}
	return all
}

// still returns the functions, of which names has the names, whose names are not in former.
func still[F any](functions []F, names, former []string) (left []F) {
	for i, f := range functions {
		if !slices.Contains(former, names[i]) {
			left = append(left, f)
		}
	}
	return left
}

func without(list, names []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(names, name) })
}

// each calls a function for the rules and for their changes, which may have none of their
// own.
func (r *Rules) each(do func(*Rules) error) error {
	if err := do(r); err != nil {
		return err
	}
	for name, later := range r.Since {
		if _, err := release.Of(name); err != nil {
			return err
		}
		if len(later.Since) > 0 {
			return fmt.Errorf("changes of %s have changes of their own", name)
		}
		if err := do(later); err != nil {
			return fmt.Errorf("since %s: %w", name, err)
		}
	}
	return nil
}
