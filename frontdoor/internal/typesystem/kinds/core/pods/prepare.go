package pods

import (
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// showGates sets the condition of a new pod with scheduling gates: the scheduler ignores
// such pods.
func showGates(w kinds.Write, obj, _ map[string]any) {
	if len(rules.List(rules.Object(obj, "spec"), "schedulingGates")) == 0 {
		return
	}
	tree.Object(obj, "status")["conditions"] = []any{map[string]any{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
		"message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": nil, "lastTransitionTime": w.Now.UTC().Format(time.RFC3339)}}
}

// podGracePeriod returns the grace period of a pod. It is 0 for a pod that is not on a node
// or has ended: no kubelet has to stop it.
func podGracePeriod(obj map[string]any, requested *int64) int64 {
	spec, phase := rules.Object(obj, "spec"), rules.Text(rules.Object(obj, "status"), "phase")
	if rules.Text(spec, "nodeName") == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if requested != nil {
		return shortest(*requested)
	}
	if n, ok := rules.Whole(spec["terminationGracePeriodSeconds"]); ok {
		return shortest(n)
	}
	return 30
}

// shortest returns 1 for a negative grace period: 0 would remove the pod from the API while
// it still runs.
func shortest(seconds int64) int64 {
	if seconds < 0 {
		return 1
	}
	return seconds
}
