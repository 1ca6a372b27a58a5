package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// taintNodes taints new nodes as not ready, so that no pod is scheduled to them before
// the taint is removed.
type taintNodes struct{ taint string }

func (p taintNodes) mutate(_ context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, "", "nodes") {
		return nil
	}
	node, err := r.Decoded()
	if err != nil {
		return err
	}
	spec := tree.Object(node, "spec")
	taints, _ := spec["taints"].([]any)
	for _, t := range taints {
		if one, ok := t.(map[string]any); ok && one["key"] == p.taint && one["effect"] == "NoSchedule" {
			return nil
		}
	}
	spec["taints"] = append(taints, map[string]any{"key": p.taint, "effect": "NoSchedule"})
	r.Changed()
	return nil
}
