package storage

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// countDriverChange increments the generation when a mutable field changes. A new CSIDriver
// has no generation.
func countDriverChange(_ kinds.Write, obj, old map[string]any) {
	spec, before := rules.Object(obj, "spec"), rules.Object(old, "spec")
	for _, field := range []string{"tokenRequests", "requiresRepublish"} {
		if !tree.Equal(spec[field], before[field]) {
			generation, _ := rules.Object(old, "metadata")["generation"].(int64)
			tree.Object(obj, "metadata")["generation"] = generation + 1
			return
		}
	}
}
