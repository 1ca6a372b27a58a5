// Package admissionregistration holds the functions of webhook configurations and
// admission policies. The admission service calls and evaluates them. It serves "Resources and their fields" of the
// specification.
package admissionregistration

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Cells: map[string]cell.Func{
		"showParamKind": showParamKind,
		"showParamRef":  showParamRef,
	},
	Checks: map[string]rules.CheckFunc{
		"mutatingBinding":    mutatingBinding,
		"mutatingPolicy":     mutatingPolicy,
		"paramKind":          paramKind,
		"paramRef":           paramRef,
		"policyStatus":       policyStatus,
		"resourceNames":      resourceNames,
		"resourceWildcards":  resourceWildcards,
		"reviewVersions":     reviewVersions,
		"reviewVersionsOnce": reviewVersionsOnce,
		"validatingPolicy":   validatingPolicy,
		"validationActions":  validationActions,
		"wildcardAlone":      wildcardAlone,
		"webhookAddress":     webhookAddress,
		"webhookConditions":  webhookConditions,
	},
}
