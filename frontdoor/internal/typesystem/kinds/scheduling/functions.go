// Package scheduling holds the functions of PriorityClasses. Two of them are reserved for
// the system. It serves "Resources and their fields" of the specification.
package scheduling

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"priorityImmutable": priorityImmutable,
		"systemPriority":    systemPriority,
	},
}
