// Package compute holds the functions about the CPU and memory of pods: the quality of
// service, and the resources of whole pods. It serves "Resources and their fields" of the
// specification.
package compute

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the file of pods refers to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"wholePodResources": wholePodResources,
	},
	Derive: map[string]rules.DeriveFunc{
		"qualityOfService": qualityOfService,
		"wholePodRequests": wholePodRequests,
	},
}
