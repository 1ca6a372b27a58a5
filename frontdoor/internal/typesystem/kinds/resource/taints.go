package resource

import (
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// timeTaints sets the time of taints of devices that do not say when they were added.
func timeTaints(w kinds.Write, obj, _ map[string]any) {
	stamp := func(taint map[string]any) {
		if taint != nil && taint["timeAdded"] == nil {
			taint["timeAdded"] = w.Now.UTC().Format(time.RFC3339)
		}
	}
	spec := rules.Object(obj, "spec")
	stamp(rules.Object(spec, "taint"))
	for _, device := range rules.Objects(spec, "devices") {
		for _, part := range []map[string]any{device, rules.Object(device, "basic")} {
			for _, taint := range rules.Objects(part, "taints") {
				stamp(taint)
			}
		}
	}
}
