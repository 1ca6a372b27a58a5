package crd

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/selectable"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/validations"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const definitionsPointer = "#/definitions/"

// addSchemas sets the schema of a type and adds the definitions of its object and list. A
// version without a schema, which only old definitions have, keeps all fields. Schemas are made
// when they are needed: until then there is only their text, a tenth of their size.
func (c *compiler) addSchemas(t *catalogue.Type, raw map[string]any) error {
	if raw == nil {
		raw = map[string]any{"type": "object", c.vocabulary.Extension + "preserve-unknown-fields": true}
	}
	text, err := tree.Encode(raw)
	if err != nil {
		return fmt.Errorf("the schema of %s %s: %w", t.APIVersion(), t.Kind, err)
	}
	of := c.schemas // not the compiler, which has the whole definition
	object := catalogue.Lazy(t.Group, t.Version, t.Kind, func() *spec.Schema { return of.object(t, text) })
	t.Describe(definitionName(t, t.Kind), object)
	c.addRules(t, raw)
	c.definition.Definitions[t.Definition] = object
	if t.ListKind != "" && t.ListKind != t.Kind {
		c.definition.Definitions[definitionName(t, t.ListKind)] = catalogue.Lazy(t.Group, t.Version, t.ListKind, func() *spec.Schema { return of.list(t) })
	}
	return nil
}

// schemas makes the schemas of a definition's types.
type schemas struct {
	vocabulary vocabulary.Vocabulary
	keepAll    bool // unknown fields are not dropped
}

// object returns the schema of a type's objects from its text in the definition.
func (c schemas) object(t *catalogue.Type, text []byte) *spec.Schema {
	raw, err := tree.Decode(text)
	if err != nil {
		panic(fmt.Sprintf("a schema that was encoded: %v", err)) // what tree encodes, it decodes
	}
	s := &spec.Schema{}
	c.fill(s, raw)
	s.Type = spec.StringOrArray{"object"}
	c.asObject(s, "ObjectMeta")
	s.AddExtension(original+"group-version-kind", kindExtension(t, t.Kind))
	addSelectable(t, s)
	return s
}

// list returns the schema of a type's lists.
func (c schemas) list(t *catalogue.Type) *spec.Schema {
	items := spec.ArrayProperty(spec.RefProperty(definitionsPointer + t.Definition))
	items.Description = "Objects of the list."
	list := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Required: []string{"items"},
		Description: t.ListKind + " is a list of " + t.Kind,
		Properties:  map[string]spec.Schema{"items": *items}}}
	c.asObject(list, "ListMeta")
	list.AddExtension(original+"group-version-kind", kindExtension(t, t.ListKind))
	addSelectable(t, list)
	return list
}

// addSelectable publishes the selectable fields of a type.
func addSelectable(t *catalogue.Type, s *spec.Schema) {
	delete(s.Extensions, original+"selectable-fields") // only the service says what they are
	if list := selectable.Extension(t.Selectable); list != nil {
		s.AddExtension(original+"selectable-fields", list)
	}
}

// isLater reports whether the release has validation rules and selectable fields. Others
// ignore them.
func isLater(types *catalogue.Catalogue) bool { return !types.Release().Before(release.V136) }

// addRules sets the validation rules of a type: those that have been compiled before, if the
// schema is still the same.
func (c *compiler) addRules(t *catalogue.Type, raw map[string]any) {
	if !c.later {
		return
	}
	if c.before != nil && c.before.Stored.Siblings[t.Version] != nil {
		t.Rules = c.before.Stored.Siblings[t.Version].Rules
		return
	}
	if rules := validations.New(raw, c.vocabulary.Extension); rules != nil {
		t.Rules = rules
	}
}

// original is the prefix of extensions of schemas in memory.
var original = vocabulary.K8s().Extension

// definitionName returns the definition name of a kind: com.example.v1.Widget.
func definitionName(t *catalogue.Type, kind string) string {
	parts := strings.Split(t.Group, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + t.Version + "." + kind
}

func kindExtension(t *catalogue.Type, kind string) []any {
	return []any{map[string]any{"group": t.Group, "version": t.Version, "kind": kind}}
}

// asObject adds the fields that every object has. What the definition itself specifies for
// metadata, which can only restrict the name, is kept beside the reference.
func (c schemas) asObject(s *spec.Schema, meta string) {
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	for name, description := range map[string]string{
		"apiVersion": "APIVersion defines the schema of this object, as group/version.",
		"kind":       "Kind of this object.",
	} {
		property := s.Properties[name]
		property.Type, property.Description = spec.StringOrArray{"string"}, description
		s.Properties[name] = property
	}
	metadata := s.Properties["metadata"]
	metadata.Type, metadata.Default, metadata.Description = nil, nil, "Standard object's metadata: what every object has."
	metadata.Ref = spec.MustCreateRef(definitionsPointer + c.vocabulary.Definitions + "apimachinery.pkg.apis.meta.v1." + meta)
	s.Properties["metadata"] = metadata
}

// schema converts a schema and those below it.
func (c schemas) schema(m map[string]any) *spec.Schema {
	s := &spec.Schema{}
	c.fill(s, m)
	return s
}

// fill converts a schema and those below it into an empty one, which takes a kilobyte.
func (c schemas) fill(s *spec.Schema, m map[string]any) {
	s.Title, s.Description, s.Format, s.Pattern = tree.Text(m, "title"), tree.Text(m, "description"), tree.Text(m, "format"), tree.Text(m, "pattern")
	if kind := tree.Text(m, "type"); kind != "" {
		s.Type = spec.StringOrArray{kind}
	}
	s.Nullable = m["nullable"] == true
	s.Default, s.Example = m["default"], m["example"]
	s.Enum, _ = m["enum"].([]any)
	s.Required = tree.Texts(m, "required")
	s.Maximum, s.Minimum, s.MultipleOf = float(m, "maximum"), float(m, "minimum"), float(m, "multipleOf")
	s.ExclusiveMaximum, s.ExclusiveMinimum = m["exclusiveMaximum"] == true, m["exclusiveMinimum"] == true
	s.MaxLength, s.MinLength = whole(m, "maxLength"), whole(m, "minLength")
	s.MaxItems, s.MinItems = whole(m, "maxItems"), whole(m, "minItems")
	s.MaxProperties, s.MinProperties = whole(m, "maxProperties"), whole(m, "minProperties")
	c.below(s, m)
	for name, value := range m {
		if rest, ok := strings.CutPrefix(name, c.vocabulary.Extension); ok {
			s.AddExtension(original+rest, value)
		}
	}
	if c.keepAll && s.Type.Contains("object") {
		s.AddExtension(original+"preserve-unknown-fields", true)
	}
	if m[c.vocabulary.Extension+"embedded-resource"] == true {
		c.asObject(s, "ObjectMeta")
		s.Required = append(s.Required, slices.DeleteFunc([]string{"kind", "apiVersion"}, func(name string) bool { return slices.Contains(s.Required, name) })...)
	}
}

// below converts the schemas below m.
func (c schemas) below(s *spec.Schema, m map[string]any) {
	var of spec.Schema // one for all of them
	for name, property := range tree.Child(m, "properties") {
		if p, ok := property.(map[string]any); ok {
			of = spec.Schema{}
			c.fill(&of, p)
			s.SetProperty(name, of)
		}
	}
	switch values := m["additionalProperties"].(type) {
	case bool:
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: values}
	case map[string]any:
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: c.schema(values)}
	}
	if items := tree.Child(m, "items"); items != nil {
		s.Items = &spec.SchemaOrArray{Schema: c.schema(items)}
	}
	s.AllOf, s.AnyOf, s.OneOf = c.parts(m, "allOf"), c.parts(m, "anyOf"), c.parts(m, "oneOf")
	if not := tree.Child(m, "not"); not != nil {
		s.Not = c.schema(not)
	}
}

func (c schemas) parts(m map[string]any, name string) []spec.Schema {
	var parts []spec.Schema
	for _, part := range children(m, name) {
		parts = append(parts, *c.schema(part))
	}
	return parts
}

func float(m map[string]any, name string) *float64 {
	switch n := m[name].(type) {
	case int64:
		return new(float64(n))
	case float64:
		return new(n)
	}
	return nil
}

func whole(m map[string]any, name string) *int64 {
	if m[name] == nil {
		return nil
	}
	return new(number(m, name))
}
