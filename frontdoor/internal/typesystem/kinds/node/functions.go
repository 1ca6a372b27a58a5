// Package node holds the functions of RuntimeClasses. It serves "Resources and their fields" of
// the specification.
package node

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"classOverhead": classOverhead,
	},
}

func classOverhead(c *rules.Check, m, _ map[string]any, at *field.Path) {
	resources.Overhead(c, rules.Object(m, "podFixed"), at)
}
