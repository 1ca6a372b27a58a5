package openapi

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/vocabulary"
)

// alternatives are the types of the values of definitions that OpenAPI v2 calls strings, by the
// end of their names.
var alternatives = map[string][]string{".api.resource.Quantity": {"string", "number"}, ".util.intstr.IntOrString": {"integer", "string"}}

// thirdVersion returns a document in OpenAPI v3.
func thirdVersion(document *spec.Swagger, v vocabulary.Vocabulary) *spec3.OpenAPI {
	converted := openapiconv.ConvertV2ToV3(document)
	for name, s := range converted.Components.Schemas {
		for end, types := range alternatives {
			if strings.HasSuffix(name, end) {
				changed := *s
				changed.Type, changed.OneOf = nil, oneOf(types...)
				converted.Components.Schemas[name] = &changed
			}
		}
		customValues(converted.Components.Schemas[name], v.Extension)
	}
	for path, item := range converted.Paths.Paths {
		original := document.Paths.Paths[path]
		for _, pair := range []struct {
			from *spec.Operation
			to   *spec3.Operation
		}{{original.Put, item.Put}, {original.Post, item.Post}, {original.Patch, item.Patch}} {
			if pair.from != nil && pair.to.RequestBody != nil {
				pair.to.RequestBody.Required = slices.ContainsFunc(pair.from.Parameters, func(p spec.Parameter) bool { return p.In == "body" && p.Required })
			}
		}
	}
	if len(converted.Components.Schemas) == 0 {
		converted.Components.Schemas = nil
	}
	return converted
}

// customValues adds what the extension of custom types says about values that are a number or a
// string. It modifies the schema, but nothing that it shares.
func customValues(s *spec.Schema, prefix string) {
	if s.Extensions[prefix+"int-or-string"] == true && len(s.AnyOf) == 0 && len(s.AllOf) == 0 {
		s.AnyOf = oneOf("integer", "string")
	}
	for name, property := range s.Properties {
		customValues(&property, prefix)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		customValues(s.Items.Schema, prefix)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		customValues(s.AdditionalProperties.Schema, prefix)
	}
}

// oneOf returns a schema for each type.
func oneOf(types ...string) []spec.Schema {
	schemas := make([]spec.Schema, len(types))
	for i, t := range types {
		schemas[i].Type = spec.StringOrArray{t}
	}
	return schemas
}
