package flowcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/services/tree"
)

// dangling is the type of the condition of a FlowSchema whose level does not exist.
const dangling = "Dangling"

// condition is a condition without its time.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func parseMeta(raw []byte) (m meta, err error) { return m, json.Unmarshal(raw, &m) }

// desired returns the condition of a FlowSchema, with the reasons and messages of Kubernetes.
func (k *Keeper) desired(f fairness.Flow) condition {
	if _, ok := k.levels.Get("", f.Level); ok {
		return condition{dangling, "False", "Found",
			fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", f.Level)}
	}
	return condition{dangling, "True", "NotFound",
		fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", f.Level)}
}

// report writes the condition of a FlowSchema if it differs.
func (k *Keeper) report(ctx context.Context, f stored[fairness.Flow]) error {
	want := k.desired(f.spec)
	for _, c := range f.Status.Conditions {
		if c == want {
			return nil
		}
	}
	return k.amend(ctx, typeOf(k.Vocabulary, flowKind), f.spec.Name, func(object map[string]any) {
		if tree.Text(object, "metadata", "uid") != f.spec.UID || tree.Text(object, "spec", "priorityLevelConfiguration", "name") != f.spec.Level {
			return // another one: the next pass has it
		}
		status := maps.Clone(tree.Child(object, "status"))
		if status == nil {
			status = map[string]any{}
		}
		conditions.Set(status, conditions.New(want.Type, want.Status, want.Reason, want.Message), k.now().UTC().Format(time.RFC3339))
		object["status"] = status
	})
}
