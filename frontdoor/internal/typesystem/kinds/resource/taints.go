package resource

import (
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// timeTaint sets the time of a taint of devices that does not say when it was added. The time is a
// default, so that it has the owner of the taint.
func timeTaint(m map[string]any, _ vocabulary.Vocabulary) {
	if m["timeAdded"] == nil {
		m["timeAdded"] = time.Now().UTC().Format(time.RFC3339)
	}
}

// retimeTaint sets the time of the taint of a rule whose effect changes, unless the client does:
// tolerations last from the time of the effect.
func retimeTaint(w kinds.Write, obj, old map[string]any) {
	taint, before := rules.Object(obj, "spec", "taint"), rules.Object(old, "spec", "taint")
	if w.Subresource == "" && taint != nil && taint["effect"] != before["effect"] && taint["timeAdded"] == before["timeAdded"] {
		taint["timeAdded"] = w.Now.UTC().Format(time.RFC3339)
	}
}

// multiplyOnce defaults the multipliers of the resources of nodes that a device uses.
func multiplyOnce(m map[string]any, _ vocabulary.Vocabulary) {
	for _, mapping := range rules.Object(m, "nodeAllocatableResourceMappings") {
		if mapping, ok := mapping.(map[string]any); ok && mapping["allocationMultiplier"] == nil {
			mapping["allocationMultiplier"] = "1"
		}
	}
}
