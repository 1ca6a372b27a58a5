package extensions

import (
	"slices"
	"time"

	"github.com/portico-platform/portico/services/tree"
)

// available is the type of the condition.
const available = "Available"

// condition is the condition Available of an APIService.
type condition struct{ status, reason, message string }

// localCondition is the condition of an APIService without a service.
var localCondition = condition{"True", "Local", "Local APIServices are always available"}

// passed is the condition of an extension that responds.
var passed = condition{"True", "Passed", "all checks passed"}

func unavailable(reason, message string) condition { return condition{"False", reason, message} }

// unknown is the condition of an extension that could not be checked.
func unknown(reason, message string) condition { return condition{"Unknown", reason, message} }

// conditionOf returns the condition of an APIService.
func conditionOf(object map[string]any) condition {
	for _, c := range tree.Objects(object, "status", "conditions") {
		if tree.Text(c, "type") == available {
			return condition{tree.Text(c, "status"), tree.Text(c, "reason"), tree.Text(c, "message")}
		}
	}
	return condition{}
}

// set writes the condition to an APIService. Its time changes with its status only.
func (c condition) set(object map[string]any, now time.Time) {
	written := map[string]any{"type": available, "status": c.status, "reason": c.reason, "message": c.message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339)}
	conditions := slices.Clone(tree.List(object, "status", "conditions"))
	i := slices.IndexFunc(conditions, func(v any) bool {
		before, _ := v.(map[string]any)
		return tree.Text(before, "type") == available
	})
	if i < 0 {
		conditions = append(conditions, written)
	} else {
		before := conditions[i].(map[string]any)
		if tree.Text(before, "status") == c.status && tree.Text(before, "lastTransitionTime") != "" {
			written["lastTransitionTime"] = before["lastTransitionTime"]
		}
		conditions[i] = written
	}
	tree.Object(object, "status")["conditions"] = conditions
}
