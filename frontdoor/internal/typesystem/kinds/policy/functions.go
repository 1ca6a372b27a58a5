// Package policy holds the functions of PodDisruptionBudgets and PodSecurityPolicies. The
// eviction subresource and the admission service enforce them. It serves "Resources and
// their fields" of the specification.
package policy

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"oneKindOfBudget":      oneKindOfBudget,
		"policyRuntimeClasses": policyRuntimeClasses,
		"securityPolicy":       securityPolicy,
		"statusConditions":     statusConditions,
	},
	Convert: map[string]kinds.ConvertFunc{
		"budgetFromV1beta1": budgetFromV1beta1,
		"budgetToV1beta1":   budgetToV1beta1,
	},
}
