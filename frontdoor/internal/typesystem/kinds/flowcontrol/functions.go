// Package flowcontrol holds the functions of FlowSchemas and PriorityLevelConfigurations.
// It serves "Resources and their fields" of the specification.
package flowcontrol

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"exemptPrecedence":      exemptPrecedence,
		"flowControlConditions": flowControlConditions,
		"flowSchemaRules":       flowSchemaRules,
		"flowSchemaSubject":     flowSchemaSubject,
		"queuingOfResponse":     queuingOfResponse,
		"flowSchemaScope":       flowSchemaScope,
		"handFitsQueues":        handFitsQueues,
		"limitsOfLevel":         limitsOfLevel,
		"nonResourceRuleLists":  nonResourceRuleLists,
		"precedence":            precedence,
		"resourceRuleLists":     resourceRuleLists,
	},
	Convert: map[string]kinds.ConvertFunc{
		"levelFromV1beta1": levelFromV1beta1,
		"levelToV1beta1":   levelToV1beta1,
	},
	Cells: map[string]cell.Func{
		"showFlowSchemaMissing": showFlowSchemaMissing,
	},
}
