package published

import (
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// keyDefaults are the defaults of fields that are part of a list's map keys, by the suffix
// of the definition's name. The document lacks them. Without them an item without a
// protocol would have another key than the same item after defaulting.
var keyDefaults = map[string]map[string]string{
	".core.v1.ServicePort":   {"protocol": "TCP"},
	".core.v1.ContainerPort": {"protocol": "TCP"},
}

// withKeyDefaults returns the definitions with the defaults of key fields. It does not
// modify the given ones.
func withKeyDefaults(definitions map[string]*spec.Schema) map[string]*spec.Schema {
	completed := maps.Clone(definitions)
	for name, s := range definitions {
		for suffix, defaults := range keyDefaults {
			if strings.HasSuffix(name, suffix) {
				completed[name] = withDefaults(s, defaults)
			}
		}
	}
	return completed
}

// withDefaults returns a copy of the schema with defaults for properties.
func withDefaults(s *spec.Schema, defaults map[string]string) *spec.Schema {
	copied := *s
	copied.Properties = maps.Clone(s.Properties)
	for field, value := range defaults {
		property := copied.Properties[field]
		property.Default = value
		copied.Properties[field] = property
	}
	return &copied
}
