// Package scheduling holds the functions of PriorityClasses, of which two are reserved for
// the system, and of groups of pods. It serves "Resources and their fields" of the specification.
package scheduling

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"groupStatus":       groupStatus,
		"priorityImmutable": priorityImmutable,
		"systemPriority":    systemPriority,
	},
	Cells: map[string]cell.Func{
		"showGroupPolicy": showGroupPolicy,
		"showGroupStatus": showGroupStatus,
	},
}
