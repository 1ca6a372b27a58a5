// Package flowcontrol holds the functions of FlowSchemas and
// PriorityLevelConfigurations. Nothing here limits requests. It serves "Resources and
// their fields" of the specification.
package flowcontrol

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are those that the files of this folder name.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"flowSchemaScope": flowSchemaScope,
		"handFitsQueues":  handFitsQueues,
	},
	Cells: map[string]cell.Func{
		"showFlowSchemaMissing": showFlowSchemaMissing,
	},
}
