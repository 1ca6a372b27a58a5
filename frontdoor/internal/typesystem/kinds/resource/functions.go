// Package resource holds the functions of claims of devices. It serves "Resources and their
// fields" of the specification.
package resource

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"claimSpec":        claimSpec,
		"claimStatus":      claimStatus,
		"classResource":    classResource,
		"classSelectors":   classSelectors,
		"deviceAttribute":  deviceAttribute,
		"deviceConstraint": deviceConstraint,
		"deviceCount":      deviceCount,
		"deviceToleration": deviceToleration,
		"devicePool":       devicePool,
		"driverParameters": driverParameters,
		"poolStatus":       poolStatus,
		"queriedPool":      queriedPool,
		"sliceSpec":        sliceSpec,
		"taintSelector":    taintSelector,
		"taintStatus":      taintStatus,
	},
	Derive: map[string]rules.DeriveFunc{
		"betaCount":    betaCount,
		"multiplyOnce": multiplyOnce,
		"timeTaint":    timeTaint,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"dropReports": dropReports,
		"retimeTaint": retimeTaint,
	},
	Cells: map[string]cell.Func{
		"showClaimState": showClaimState,
	},
	Convert: map[string]kinds.ConvertFunc{
		"claimFromV1beta1":    claimFromV1beta1,
		"claimToV1beta1":      claimToV1beta1,
		"sliceFromV1beta1":    sliceFromV1beta1,
		"sliceToV1beta1":      sliceToV1beta1,
		"templateFromV1beta1": templateFromV1beta1,
		"templateToV1beta1":   templateToV1beta1,
	},
}
