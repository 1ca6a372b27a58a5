package core

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// nameSecrets keeps of a service account's references to secrets the names: they are
// in its namespace.
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
