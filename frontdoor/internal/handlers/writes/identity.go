package writes

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
)

// identityFields are those that a write looks at before the schema does: one of a
// wrong type must not count as one that is left out.
func identityFields() []string {
	return []string{"name", "generateName", "namespace", "uid", "resourceVersion"}
}

// wrongIdentity says what is wrong with metadata that is no object, or with an
// identity that is no text. It returns nothing for an object that has none.
func wrongIdentity(object map[string]any) string {
	switch meta := object["metadata"].(type) {
	case nil:
	case map[string]any:
		for _, name := range identityFields() {
			if _, text := meta[name].(string); !text && meta[name] != nil {
				return "metadata." + name + ": expected a string"
			}
		}
	default:
		return "metadata: expected an object"
	}
	return ""
}

// checkIdentity refuses a body with such metadata (400).
func checkIdentity(object map[string]any, t *catalogue.Type) error {
	if why := wrongIdentity(object); why != "" {
		return services.BadRequest("%s in version %q cannot be handled as a %s: %s", t.Kind, t.Version, t.Kind, why)
	}
	return nil
}
