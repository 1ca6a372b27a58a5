package normal

import (
	"maps"
	"strings"
)

// sharedParameters puts the parameters that the operations of an OpenAPI document share where
// they are referred to: their names have a hash, which includes the description.
func sharedParameters(o map[string]any) {
	parameters, ok := o["parameters"].(map[string]any)
	if !ok || o["swagger"] == nil {
		return
	}
	delete(o, "parameters")
	inline(o["paths"], parameters)
}

func inline(value any, parameters map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if parameter, ok := parameters[strings.TrimPrefix(ref, "#/parameters/")].(map[string]any); ok {
				delete(v, "$ref")
				maps.Copy(v, parameter)
				v["shared"] = true
			}
		}
		for _, below := range v {
			inline(below, parameters)
		}
	case []any:
		for _, below := range v {
			inline(below, parameters)
		}
	}
}
