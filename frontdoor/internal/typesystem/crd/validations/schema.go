// Package validations checks and evaluates the validation rules of custom types: the
// expressions of x-kubernetes-validations, or the extension of that name in the vocabulary.
// It compiles them with the libraries of the API server, whose limits and messages it keeps.
// It does not validate schemas in any other way; package structural does. It serves
// "Resources and their fields" of the specification.
package validations

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Has reports whether a schema, or one below it, has validation rules.
func Has(raw map[string]any, extension string) bool {
	if list, _ := raw[extension+"validations"].([]any); len(list) > 0 {
		return true
	}
	found := false
	below(raw, func(_, _ string, s map[string]any) { found = found || Has(s, extension) })
	return found
}

// below calls visit for the schemas directly below a schema, with their keyword and their
// name or number.
func below(raw map[string]any, visit func(keyword, name string, s map[string]any)) {
	for _, keyword := range []string{"properties", "definitions", "patternProperties"} {
		properties, _ := raw[keyword].(map[string]any)
		for name, value := range properties {
			if s, ok := value.(map[string]any); ok {
				visit(keyword, name, s)
			}
		}
	}
	for _, keyword := range []string{"items", "additionalProperties", "not"} {
		if s, ok := raw[keyword].(map[string]any); ok {
			visit(keyword, "", s)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := raw[keyword].([]any)
		for i, value := range parts {
			if s, ok := value.(map[string]any); ok {
				visit(keyword, fmt.Sprint(i), s)
			}
		}
	}
}

// typed returns a schema in the form of the library.
func typed(raw map[string]any, extension string) (*apiextensions.JSONSchemaProps, *schema.Structural, error) {
	text, err := json.Marshal(original(raw, extension))
	if err != nil {
		return nil, nil, err
	}
	var published apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, nil, err
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&published, &props, nil); err != nil {
		return nil, nil, err
	}
	structural, err := schema.NewStructural(&props)
	return &props, structural, err
}

// original returns a schema whose extensions have the names that the library knows. It
// copies what it changes.
func original(raw map[string]any, extension string) map[string]any {
	known := vocabulary.K8s().Extension
	if extension == known {
		return raw
	}
	renamed := make(map[string]any, len(raw))
	for name, value := range raw {
		if rest, ok := strings.CutPrefix(name, extension); ok {
			name = known + rest
		}
		renamed[name] = value
	}
	copied := map[string]bool{} // the keywords whose values have been copied
	below(raw, func(keyword, name string, s map[string]any) {
		switch value := raw[keyword].(type) {
		case map[string]any:
			if name == "" && keyword != "properties" && keyword != "definitions" && keyword != "patternProperties" {
				renamed[keyword] = original(s, extension)
				return
			}
			if !copied[keyword] {
				renamed[keyword], copied[keyword] = make(map[string]any, len(value)), true
			}
			renamed[keyword].(map[string]any)[name] = original(s, extension)
		case []any:
			if !copied[keyword] {
				renamed[keyword], copied[keyword] = []any{}, true
			}
			renamed[keyword] = append(renamed[keyword].([]any), original(s, extension))
		}
	})
	return renamed
}
