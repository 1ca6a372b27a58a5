package fragments

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/gnostic-models/compiler"
	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// messageOf returns a schema as a message: the same as if it had been encoded in JSON and parsed. Errors are those of the
// libraries.
func messageOf(s *spec.Schema) (*openapi_v2.Schema, error) {
	if rare(s) || inexpressible(s) {
		return parseSchema(s)
	}
	m := &openapi_v2.Schema{
		XRef: s.Ref.String(), Format: s.Format, Title: s.Title, Description: s.Description, Pattern: s.Pattern, Required: s.Required,
		ExclusiveMaximum: s.ExclusiveMaximum, ExclusiveMinimum: s.ExclusiveMinimum, UniqueItems: s.UniqueItems,
		MultipleOf: valueOf(s.MultipleOf), Maximum: valueOf(s.Maximum), Minimum: valueOf(s.Minimum),
		MaxLength: valueOf(s.MaxLength), MinLength: valueOf(s.MinLength), MaxItems: valueOf(s.MaxItems), MinItems: valueOf(s.MinItems),
		MaxProperties: valueOf(s.MaxProperties), MinProperties: valueOf(s.MinProperties),
	}
	if len(s.Type) > 0 {
		m.Type = &openapi_v2.TypeItem{Value: s.Type}
	}
	if err := addValues(m, s); err != nil {
		return nil, err
	}
	return m, addBelow(m, s)
}

// inexpressible reports whether a schema has what version 2 of OpenAPI does not, or names of extensions that it ignores.
func inexpressible(s *spec.Schema) bool {
	if s.Nullable || len(s.OneOf) > 0 || len(s.AnyOf) > 0 || s.Not != nil {
		return true
	}
	for name := range s.Extensions {
		if !strings.HasPrefix(name, "x-") {
			return true
		}
	}
	return false
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// addValues adds values of any kind.
func addValues(m *openapi_v2.Schema, s *spec.Schema) (err error) {
	if s.Default != nil {
		if m.Default, err = anyOf(s.Default); err != nil {
			return err
		}
	}
	if s.Example != nil && !empty(s.Example) {
		if m.Example, err = anyOf(s.Example); err != nil {
			return err
		}
	}
	for _, value := range s.Enum {
		one, err := anyOf(value)
		if err != nil {
			return err
		}
		m.Enum = append(m.Enum, one)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extensions)) {
		value, err := anyOf(s.Extensions[name])
		if err != nil {
			return err
		}
		m.VendorExtension = append(m.VendorExtension, &openapi_v2.NamedAny{Name: name, Value: value})
	}
	return nil
}

// addBelow adds the schemas below a schema.
func addBelow(m *openapi_v2.Schema, s *spec.Schema) error {
	if s.Items != nil {
		below, err := messageOf(s.Items.Schema)
		if err != nil {
			return err
		}
		m.Items = &openapi_v2.ItemsItem{Schema: []*openapi_v2.Schema{below}}
	}
	if a := s.AdditionalProperties; a != nil && a.Schema == nil {
		m.AdditionalProperties = &openapi_v2.AdditionalPropertiesItem{Oneof: &openapi_v2.AdditionalPropertiesItem_Boolean{Boolean: a.Allows}}
	} else if a != nil {
		below, err := messageOf(a.Schema)
		if err != nil {
			return err
		}
		m.AdditionalProperties = &openapi_v2.AdditionalPropertiesItem{Oneof: &openapi_v2.AdditionalPropertiesItem_Schema{Schema: below}}
	}
	for i := range s.AllOf {
		below, err := messageOf(&s.AllOf[i])
		if err != nil {
			return err
		}
		m.AllOf = append(m.AllOf, below)
	}
	if len(s.Properties) == 0 {
		return nil
	}
	m.Properties = &openapi_v2.Properties{}
	var property spec.Schema // one for all of them
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property = s.Properties[name]
		below, err := messageOf(&property)
		if err != nil {
			return err
		}
		m.Properties.AdditionalProperties = append(m.Properties.AdditionalProperties, &openapi_v2.NamedSchema{Name: name, Value: below})
	}
	return nil
}

// anyOf returns a value as a message.
func anyOf(value any) (*openapi_v2.Any, error) {
	if text, ok := listOfTexts(value); ok {
		return &openapi_v2.Any{Yaml: text}, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	root, err := rootOf(encoded)
	if err != nil {
		return nil, err
	}
	return &openapi_v2.Any{Yaml: string(compiler.Marshal(root))}, nil
}

// listOfTexts returns a list of objects with plain texts in YAML, as which every type has its kind; false for other values.
func listOfTexts(value any) (text string, ok bool) {
	list, _ := value.([]any)
	var all strings.Builder
	for _, one := range list {
		object, _ := one.(map[string]any)
		if len(object) == 0 {
			return "", false
		}
		separator := "- "
		for _, name := range slices.Sorted(maps.Keys(object)) {
			value, ok := object[name].(string)
			if !ok || !Plain([]string{name, value}) {
				return "", false
			}
			all.WriteString(separator + name + ": " + value + "\n")
			separator = "  "
		}
	}
	return all.String(), len(list) > 0
}

// parseSchema returns a schema that has been encoded in JSON and parsed.
func parseSchema(s *spec.Schema) (*openapi_v2.Schema, error) {
	e := encoder{}
	e.schema(s)
	if e.err != nil {
		return nil, e.err
	}
	root, err := rootOf(e.to)
	if err != nil {
		return nil, err
	}
	return openapi_v2.NewSchema(root, compiler.NewContextWithExtensions("$root", root, nil, nil))
}
