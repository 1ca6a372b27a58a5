// Package node holds the functions of RuntimeClasses. It serves "Resources and their fields" of
// the specification.
package node

import (
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"classOverhead": classOverhead,
	},
	Convert: map[string]kinds.ConvertFunc{
		"classFromV1alpha1": classFromV1alpha1,
		"classToV1alpha1":   classToV1alpha1,
	},
}

func classOverhead(c *rules.Check, m, _ map[string]any, at *field.Path) {
	resources.Overhead(c, rules.Object(m, "podFixed"), at)
}

// In v1alpha1 the fields of a RuntimeClass are those of its spec, and the handler has another
// name.

func classFromV1alpha1(_ vocabulary.Vocabulary, class map[string]any) {
	spec := maps.Clone(tree.Child(class, "spec"))
	delete(class, "spec")
	edit.Rename(spec, "runtimeHandler", "handler")
	maps.Copy(class, spec)
}

func classToV1alpha1(_ vocabulary.Vocabulary, class map[string]any) {
	spec := map[string]any{}
	for name, in := range map[string]string{"handler": "runtimeHandler", "overhead": "overhead", "scheduling": "scheduling"} {
		if value, ok := edit.Take(class, name); ok {
			spec[in] = value
		}
	}
	class["spec"] = spec
}
