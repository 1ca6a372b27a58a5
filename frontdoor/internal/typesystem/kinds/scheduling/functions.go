// Package scheduling holds the functions of PriorityClasses, of which the system has
// two of its own. It serves "Resources and their fields" of the specification.
package scheduling

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are those that the files of this folder name.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"priorityStays":  priorityStays,
		"systemPriority": systemPriority,
	},
}
