package pods

import (
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// keepAllButEphemeralContainers undoes what a write of a pod's ephemeral containers changed
// elsewhere.
func keepAllButEphemeralContainers(w kinds.Write, obj, old map[string]any) {
	if w.Subresource != "ephemeralcontainers" {
		return
	}
	added, given := rules.AsObject(obj["spec"])["ephemeralContainers"]
	for field := range obj {
		if field != "metadata" {
			kinds.Keep(obj, old, field)
		}
	}
	spec := maps.Clone(rules.AsObject(old["spec"]))
	delete(spec, "ephemeralContainers")
	if given {
		spec["ephemeralContainers"] = added
	}
	obj["spec"], obj["status"] = spec, old["status"]
	for _, field := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		kinds.Keep(tree.Object(obj, "metadata"), tree.Object(old, "metadata"), field)
	}
}

// podGracePeriod: only a pod on a node needs time to end.
func podGracePeriod(obj map[string]any, asked *int64) int64 {
	spec, phase := rules.Object(obj, "spec"), rules.Text(rules.Object(obj, "status"), "phase")
	if rules.Text(spec, "nodeName") == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if asked != nil {
		return shortest(*asked)
	}
	if n, ok := rules.Whole(spec["terminationGracePeriodSeconds"]); ok {
		return shortest(n)
	}
	return 30
}

// shortest takes less than none for as little as there is: a pod on a node is never
// gone by a mistake of the sign.
func shortest(seconds int64) int64 {
	if seconds < 0 {
		return 1
	}
	return seconds
}
