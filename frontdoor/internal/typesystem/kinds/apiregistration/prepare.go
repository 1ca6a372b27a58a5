package apiregistration

import (
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// createAPIService sets the condition Available of a local APIService.
func createAPIService(w kinds.Write, obj, _ map[string]any) {
	if rules.AsObject(obj["spec"])["service"] == nil {
		obj["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "Local",
			"message": "Local APIServices are always available", "lastTransitionTime": w.Now.UTC().Format(time.RFC3339)}}}
	}
}
