// Package coordination holds the functions of leases and of candidates for them. It serves
// "Resources and their fields" of the specification.
package coordination

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"candidateStrategy": candidateStrategy,
		"candidateVersions": candidateVersions,
		"leaseStrategy":     leaseStrategy,
		"preferredHolder":   preferredHolder,
	},
}
