package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// defaultTolerations adds tolerations for nodes that are not ready or unreachable to pods
// that have none.
type defaultTolerations struct {
	taints []taint
}

// taint is the key of a node taint and the default tolerationSeconds.
type taint struct {
	key     string
	seconds int64
}

func (p defaultTolerations) mutate(_ context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, "", "pods") && !r.Is(services.OperationUpdate, "", "pods") {
		return nil
	}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	spec, _ := pod["spec"].(map[string]any)
	if spec == nil {
		return nil
	}
	tolerations, _ := spec["tolerations"].([]any)
	for _, t := range p.taints {
		if tolerated(tolerations, t.key) {
			continue
		}
		tolerations = append(tolerations, map[string]any{
			"key": t.key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": t.seconds,
		})
		r.Changed()
	}
	if len(tolerations) > 0 {
		spec["tolerations"] = tolerations
	}
	return nil
}

// tolerated reports whether a toleration covers the NoExecute taint with this key.
func tolerated(tolerations []any, key string) bool {
	for _, t := range tolerations {
		one, _ := t.(map[string]any)
		itsKey, _ := one["key"].(string)
		effect, _ := one["effect"].(string)
		if (itsKey == key || itsKey == "") && (effect == "NoExecute" || effect == "") {
			return true
		}
	}
	return false
}
