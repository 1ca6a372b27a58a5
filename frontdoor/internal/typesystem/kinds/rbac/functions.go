// Package rbac holds the functions of roles and their bindings. The module authz evaluates
// them. It serves "Resources and their fields" of the specification.
package rbac

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"aggregationSelectors": aggregationSelectors,
		"namespacedRules":      namespacedRules,
		"policyRule":           policyRule,
		"roleRefGroupIs":       roleRefGroupIs,
		"subjectOfKind":        subjectOfKind,
		"subjectOfVersion":     subjectOfVersion,
	},
	Derive: map[string]rules.DeriveFunc{
		"roleRefGroup":   roleRefGroup,
		"subjectGroup":   subjectGroup,
		"subjectVersion": subjectVersion,
	},
	Convert: map[string]kinds.ConvertFunc{
		"bindingFromV1alpha1": bindingFromV1alpha1,
		"bindingToV1alpha1":   bindingToV1alpha1,
	},
	Cells: map[string]cell.Func{
		"showRoleReference":   showRoleReference,
		"showSubjectAccounts": showSubjectAccounts,
		"showSubjectGroups":   showSubjectGroups,
		"showSubjectUsers":    showSubjectUsers,
	},
}
