package core

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// nameSecrets removes all fields but the name from a ServiceAccount's references to
// Secrets: they are in its namespace.
func nameSecrets(_ kinds.Write, obj, _ map[string]any) {
	secrets, _ := obj["secrets"].([]any)
	for i, item := range secrets {
		if reference, ok := item.(map[string]any); ok {
			secrets[i] = map[string]any{}
			if name, given := reference["name"]; given {
				secrets[i] = map[string]any{"name": name}
			}
		}
	}
}
