package structural

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/scalar"
)

// keywordKinds are the JSON types of keywords.
var keywordKinds = kinds(map[string][]string{
	"a string":      {"type", "format", "title", "description", "pattern", "id", "$ref", "$schema", "list-type", "map-type"},
	"a boolean":     {"nullable", "exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "preserve-unknown-fields", "embedded-resource", "int-or-string"},
	"a number":      {"maximum", "minimum", "multipleOf"},
	"an integer":    {"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"},
	"a list":        {"required", "enum", "allOf", "anyOf", "oneOf", "list-map-keys", "validations"},
	"an object":     {"properties", "not", "definitions", "dependencies", "patternProperties"},
	booleanOrSchema: {"additionalProperties", "additionalItems"},
	schemaOrSchemas: {"items"},
})

const (
	booleanOrSchema = "a boolean or a schema"
	schemaOrSchemas = "a schema or a list of them"
)

func kinds(of map[string][]string) map[string]string {
	all := map[string]string{}
	for kind, names := range of {
		for _, name := range names {
			all[name] = kind
		}
	}
	return all
}

// Mistyped returns the error of the first keyword whose value has a wrong JSON type in a schema or below it; ""
// if there is none. Such a definition cannot be decoded, whatever else is wrong with it.
func Mistyped(s map[string]any, at *field.Path, extension string) string {
	var all []string
	mistyped(s, at, extension, func(at *field.Path, expected string, value any) {
		all = append(all, at.String()+": expected "+expected+", got "+scalar.Describe(value))
	})
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

func mistyped(s map[string]any, at *field.Path, extension string, found func(*field.Path, string, any)) {
	for name, value := range s {
		kind := keywordKinds[strings.TrimPrefix(name, extension)]
		if kind == "" || value == nil {
			continue
		}
		if !fits(value, kind) {
			found(at.Field(name), kind, value)
			continue
		}
		switch of := value.(type) {
		case map[string]any:
			if kind == "an object" && name != "not" {
				for key, below := range of {
					part(below, at.Field(name).Entry(key), extension, found)
				}
			} else {
				mistyped(of, at.Field(name), extension, found)
			}
		case []any:
			for i, item := range of {
				switch name {
				case "allOf", "anyOf", "oneOf", "items":
					part(item, at.Field(name).Item(i), extension, found)
				case "required", extension + "list-map-keys":
					if !fits(item, "a string") && item != nil {
						found(at.Field(name).Item(i), "a string", item)
					}
				}
			}
		}
	}
}

// part checks a schema among others.
func part(value any, at *field.Path, extension string, found func(*field.Path, string, any)) {
	if s, ok := value.(map[string]any); ok {
		mistyped(s, at, extension, found)
	} else if _, names := value.([]any); value != nil && !(names && at.Parent.Name == "dependencies") {
		found(at, "an object", value)
	}
}

// fits reports whether a value has a JSON type.
func fits(value any, kind string) bool {
	switch is := scalar.Describe(value); kind {
	case "an integer":
		_, whole := rules.Whole(value)
		return whole
	case booleanOrSchema:
		return is == "a boolean" || is == "an object"
	case schemaOrSchemas:
		return is == "a list" || is == "an object"
	default:
		return is == kind
	}
}
