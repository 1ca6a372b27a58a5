package flowcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// dangling is the type of the condition of a FlowSchema whose level does not exist.
const dangling = "Dangling"

// manager owns the conditions, and Producer the objects, under the names that they have in Kubernetes.
const (
	manager  = "api-priority-and-fairness-config-consumer-v1"
	Producer = "api-priority-and-fairness-config-producer-v1"
)

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
	return k.amend(ctx, typeOf(k.Vocabulary, flowKind), f.spec.Name, func(a amend.Amendment, object map[string]any) error {
		if tree.Text(object, "metadata", "uid") != f.spec.UID || tree.Text(object, "spec", "priorityLevelConfiguration", "name") != f.spec.Level {
			return nil // another one: the next pass has it
		}
		status := maps.Clone(tree.Child(object, "status"))
		if status == nil {
			status = map[string]any{}
		}
		c := conditions.New(want.Type, want.Status, want.Reason, want.Message)
		conditions.Set(status, c, k.now().UTC().Format(time.RFC3339))
		if !a.Engine.Types.Release().Before(release.V136) {
			return a.ApplyStatus(ctx, object, manager, map[string]any{"conditions": []any{c}})
		}
		before := typesystem.Copy(object)
		object["status"] = status
		return a.Engine.Merge.Track(fieldmanager.Change{Type: a.Type, Live: before, New: object, Manager: manager, Subresource: "status"})
	})
}
