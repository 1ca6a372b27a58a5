// Package formats warns of formats in the schemas of custom types that nothing validates. It
// serves "Other signals" of the specification.
package formats

import (
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/structural"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/keywords"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// Warnings returns the warnings about a valid definition in version v1, sorted: the formats
// that a release ignores, beyond those in old, which is nil for a create. Release 1.21 has none.
func Warnings(r release.Release, object, old map[string]any) (warnings []string) {
	if r.Before(release.V136) {
		return nil
	}
	before := ignored(r, old)
	for _, format := range ignored(r, object) {
		if _, had := slices.BinarySearch(before, format); !had {
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", format))
		}
	}
	return warnings
}

// ignored returns the formats in the schemas of a definition that are not validated, sorted.
func ignored(r release.Release, definition map[string]any) (found []string) {
	var visit func(s map[string]any, _ *field.Path)
	visit = func(s map[string]any, _ *field.Path) {
		if format := tree.Text(s, "format"); format != "" && !keywords.Recognizes(r, tree.Text(s, "type"), format) {
			found = append(found, format)
		}
		for _, part := range slices.Concat(rules.Objects(s, "allOf"), rules.Objects(s, "anyOf"), rules.Objects(s, "oneOf")) {
			structural.Each(part, nil, visit)
		}
		if not := tree.Child(s, "not"); not != nil {
			structural.Each(not, nil, visit)
		}
	}
	for _, version := range rules.Objects(tree.Child(definition, "spec"), "versions") {
		structural.Each(tree.Child(tree.Child(version, "schema"), "openAPIV3Schema"), nil, visit)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
