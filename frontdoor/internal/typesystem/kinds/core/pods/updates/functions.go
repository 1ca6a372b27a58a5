// Package updates holds the functions about updates of pods: what may change in a pod, in its
// status, and by its subresources. It serves "Resources and their fields" of the
// specification.
package updates

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the file of pods refers to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"podChanges": podChanges,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"keepAllButEphemeralContainers": keepAllButEphemeralContainers,
		"keepAllButResources":           keepAllButResources,
		"keepObserved":                  keepObserved,
	},
}
