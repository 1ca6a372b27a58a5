// Package reduce removes from OpenAPI documents what their version 2 cannot express. It does not
// check the documents. It serves "Groups and paths" of the specification.
package reduce

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Document removes what OpenAPI v2 cannot express: oneOf, anyOf, not, nullable, what is next to
// a reference, and preserved unknown fields, which only schemas of custom types have. Nullable
// schemas and those that preserve fields lose their type and properties, so that clients accept
// any value. It modifies the document's schemas in place.
func Document(document *spec.Swagger) *spec.Swagger {
	for name, s := range document.Definitions {
		if keepsFields(&s) {
			s.Properties, s.Required = nil, nil
			s.VendorExtensible = spec.VendorExtensible{Extensions: withoutKeeping(s.Extensions)}
		}
		document.Definitions[name] = reducedSchema(s)
	}
	return document
}

const keeping = "preserve-unknown-fields"

// keepsFields reports whether a schema preserves unknown fields.
func keepsFields(s *spec.Schema) bool {
	for name, value := range s.Extensions {
		if strings.HasSuffix(name, keeping) {
			return value == true
		}
	}
	return false
}

func withoutKeeping(extensions spec.Extensions) spec.Extensions {
	others := spec.Extensions{}
	for name, value := range extensions {
		if !strings.HasSuffix(name, keeping) {
			others[name] = value
		}
	}
	return others
}

// Reference returns a schema that refers to another one without what is next to the
// reference, which clients refuse in version 2, and others unchanged.
func Reference(s spec.Schema) spec.Schema {
	if s.Ref.String() != "" {
		s.SchemaProps = spec.SchemaProps{Ref: s.Ref, Description: s.Description, Default: s.Default}
	}
	return s
}

func reducedSchema(s spec.Schema) spec.Schema {
	s = Reference(s)
	s.OneOf, s.AnyOf, s.Not = nil, nil, nil
	if s.Nullable {
		s.Nullable, s.Type, s.Properties, s.Items = false, nil, nil, nil
	}
	if keepsFields(&s) {
		s.Type, s.Properties, s.Items = nil, nil, nil
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
