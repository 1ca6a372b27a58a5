package fragments

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// appendSchema appends a schema in JSON: the same bytes as json.Marshal, in a tenth of the time, which is what most of a
// document about thousands of types takes.
func appendSchema(to []byte, s spec.Schema) ([]byte, error) {
	e := encoder{to: to}
	e.schema(&s)
	return e.to, e.err
}

// encoder appends JSON until the first error.
type encoder struct {
	to  []byte
	err error
}

// schema appends a schema. Members are in the order of the library.
func (e *encoder) schema(s *spec.Schema) {
	if rare(s) {
		e.value(*s)
		return
	}
	m := members{encoder: e}
	m.open()
	m.text("description", s.Description)
	m.types(s.Type)
	m.flag("nullable", s.Nullable)
	m.text("format", s.Format)
	m.text("title", s.Title)
	m.any("default", s.Default, s.Default != nil)
	m.any("maximum", s.Maximum, s.Maximum != nil)
	m.flag("exclusiveMaximum", s.ExclusiveMaximum)
	m.any("minimum", s.Minimum, s.Minimum != nil)
	m.flag("exclusiveMinimum", s.ExclusiveMinimum)
	m.number("maxLength", s.MaxLength)
	m.number("minLength", s.MinLength)
	m.text("pattern", s.Pattern)
	m.number("maxItems", s.MaxItems)
	m.number("minItems", s.MinItems)
	m.flag("uniqueItems", s.UniqueItems)
	m.any("multipleOf", s.MultipleOf, s.MultipleOf != nil)
	m.any("enum", s.Enum, len(s.Enum) > 0)
	m.number("maxProperties", s.MaxProperties)
	m.number("minProperties", s.MinProperties)
	m.any("required", s.Required, len(s.Required) > 0)
	if s.Items != nil {
		m.name("items")
		e.schema(s.Items.Schema)
	}
	m.list("allOf", s.AllOf)
	m.list("oneOf", s.OneOf)
	m.list("anyOf", s.AnyOf)
	if s.Not != nil {
		m.name("not")
		e.schema(s.Not)
	}
	m.schemas("properties", s.Properties)
	if a := s.AdditionalProperties; a != nil {
		m.name("additionalProperties")
		if a.Schema != nil {
			e.schema(a.Schema)
		} else {
			e.to = strconv.AppendBool(e.to, a.Allows)
		}
	}
	m.any("example", s.Example, s.Example != nil && !empty(s.Example))
	m.text("$ref", s.Ref.String())
	for _, name := range slices.Sorted(maps.Keys(s.Extensions)) {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-") {
			m.any(name, s.Extensions[name], true)
		}
	}
	m.close()
}

// rare reports whether a schema has what definitions have never or nearly never, and what only the library encodes.
func rare(s *spec.Schema) bool {
	return s.ID != "" || s.Schema != "" || s.Type != nil && len(s.Type) == 0 || s.Items != nil && s.Items.Schema == nil || len(s.PatternProperties) > 0 ||
		len(s.Dependencies) > 0 || s.AdditionalItems != nil || len(s.Definitions) > 0 || s.Discriminator != "" || s.ReadOnly || s.ExternalDocs != nil ||
		len(s.ExtraProps) > 0
}

// empty reports whether the encoding of a value is.
func empty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// value appends what the library encodes.
func (e *encoder) value(v any) {
	if e.err != nil {
		return
	}
	var encoded []byte
	encoded, e.err = json.Marshal(v)
	e.to = append(e.to, encoded...)
}

// text appends a text.
func (e *encoder) text(s string) {
	if strings.ContainsFunc(s, escaped) {
		e.value(s)
		return
	}
	e.to = append(append(append(e.to, '"'), s...), '"')
}

// escaped reports whether a character may not be in a text as it is.
func escaped(r rune) bool {
	return r < ' ' || r > '~' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&'
}

// members appends the members of an object.
type members struct {
	*encoder
	some bool
}

func (m *members) open()  { m.to = append(m.to, '{') }
func (m *members) close() { m.to = append(m.to, '}') }

func (m *members) name(name string) {
	if m.some {
		m.to = append(m.to, ',')
	}
	m.some = true
	m.encoder.text(name)
	m.to = append(m.to, ':')
}

// The following append a member unless it has the value that is omitted.

func (m *members) text(name, value string) {
	if value != "" {
		m.name(name)
		m.encoder.text(value)
	}
}

func (m *members) flag(name string, value bool) {
	if value {
		m.name(name)
		m.to = append(m.to, "true"...)
	}
}

func (m *members) number(name string, value *int64) {
	if value != nil {
		m.name(name)
		m.to = strconv.AppendInt(m.to, *value, 10)
	}
}

func (m *members) any(name string, value any, set bool) {
	if set {
		m.name(name)
		m.value(value)
	}
}

func (m *members) types(all spec.StringOrArray) {
	switch len(all) {
	case 0:
	case 1:
		m.text("type", all[0])
	default:
		m.any("type", all, true)
	}
}

func (m *members) list(name string, all []spec.Schema) {
	if len(all) == 0 {
		return
	}
	m.name(name)
	m.to = append(m.to, '[')
	for i := range all {
		if i > 0 {
			m.to = append(m.to, ',')
		}
		m.schema(&all[i])
	}
	m.to = append(m.to, ']')
}

func (m *members) schemas(name string, all map[string]spec.Schema) {
	if len(all) == 0 {
		return
	}
	m.name(name)
	below := members{encoder: m.encoder}
	below.open()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		below.name(name)
		s := all[name]
		below.schema(&s)
	}
	below.close()
}
