package discovery

import "k8s.io/kube-openapi/pkg/validation/spec"

// reduced takes out of a document what OpenAPI v2 has no words for, which only the
// schemas of custom types have: conditions, and null as a value. What may be null has
// no type then, so that clients let it pass. The document's schemas are changed in
// place.
func reduced(document *spec.Swagger) *spec.Swagger {
	for name, s := range document.Definitions {
		document.Definitions[name] = reducedSchema(s)
	}
	return document
}

func reducedSchema(s spec.Schema) spec.Schema {
	s.OneOf, s.AnyOf, s.Not = nil, nil, nil
	if s.Nullable {
		s.Nullable, s.Type, s.Properties, s.Items = false, nil, nil, nil
	}
	for name, property := range s.Properties {
		s.Properties[name] = reducedSchema(property)
	}
	for i, part := range s.AllOf {
		s.AllOf[i] = reducedSchema(part)
	}
	if s.Items != nil && s.Items.Schema != nil {
		*s.Items.Schema = reducedSchema(*s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		*s.AdditionalProperties.Schema = reducedSchema(*s.AdditionalProperties.Schema)
	}
	return s
}
