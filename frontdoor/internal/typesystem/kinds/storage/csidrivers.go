package storage

import (
	"maps"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// driversMutable is the first release in which most of a driver may change.
var driversMutable, _ = release.Of("1.33")

// countDriverChange increments the generation when a mutable field changes. A new CSIDriver
// has no generation.
func countDriverChange(w kinds.Write, obj, old map[string]any) {
	spec, before := rules.Object(obj, "spec"), rules.Object(old, "spec")
	mutable := []string{"tokenRequests", "requiresRepublish"}
	if !w.Release.Before(driversMutable) {
		mutable = slices.AppendSeq(slices.Collect(maps.Keys(spec)), maps.Keys(before))
	}
	for _, field := range mutable {
		if !tree.Equal(spec[field], before[field]) {
			generation, _ := rules.Object(old, "metadata")["generation"].(int64)
			tree.Object(obj, "metadata")["generation"] = generation + 1
			return
		}
	}
}
