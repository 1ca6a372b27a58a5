package storage

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// secrets are the fields of sources that name a secret. (nodeStageSecretRef has never
// been looked at.)
var secrets = [...]string{"secretRef", "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef"}

// namespacedSecrets: a volume is in no namespace, so that its secrets name theirs.
func namespacedSecrets(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, name := range secrets {
		secret, given := m[name].(map[string]any)
		for _, part := range [...]string{"name", "namespace"} {
			if given && rules.Text(secret, part) == "" {
				c.Required(at.Field(name).Field(part), "")
			}
		}
	}
}
