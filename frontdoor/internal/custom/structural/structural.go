package custom

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
)

// structural checks the schemas of definitions: a schema is structural when the
// shape of an object can be read from it without its conditions (allOf, anyOf,
// oneOf, not), so that it is known which fields there are and of which type.
type structural struct {
	*field.Errors
	extension string // prefix of extensions
}

// level is where in a schema another one stands.
type level int

const (
	atRoot level = iota
	atItem
	atField
)

// known are the types of values.
var knownTypes = []string{"object", "array", "string", "integer", "number", "boolean"}

// keywords are the JSON types of keywords that are not checked when a definition is
// decoded, as what stands below items is not.
var keywordTypes = map[string]string{
	"type": "string", "format": "string", "title": "string", "description": "string", "pattern": "string",
	"properties": "object", "not": "object", "required": "array", "enum": "array", "allOf": "array", "anyOf": "array", "oneOf": "array",
	"nullable": "boolean", "exclusiveMaximum": "boolean", "exclusiveMinimum": "boolean", "uniqueItems": "boolean",
	"maximum": "number", "minimum": "number", "multipleOf": "number",
	"maxLength": "number", "minLength": "number", "maxItems": "number", "minItems": "number", "maxProperties": "number", "minProperties": "number",
}

// refused are the keywords that schemas of definitions may not have.
var refused = []string{"$ref", "id", "definitions", "dependencies", "patternProperties", "additionalItems"}

// schema checks a schema, and what stands below it.
func (c *structural) schema(s map[string]any, where level, at *field.Path) {
	c.keywords(s, at)
	c.kind(s, where, at)
	c.extensions(s, at)
	c.listType(s, at)
	for name, property := range child(s, "properties") {
		c.schema(asSchema(property), atField, at.Field("properties").Entry(name))
	}
	if items := child(s, "items"); items != nil {
		c.schema(items, atItem, at.Field("items"))
	}
	if values := child(s, "additionalProperties"); values != nil {
		c.schema(values, atField, at.Field("additionalProperties"))
	}
	if where == atRoot || c.is(s, "embedded-resource") {
		c.metadata(s, where, at)
	}
	c.conditions(s, s, at)
}

// asSchema reads a value that must be a schema; anything else is an empty one.
func asSchema(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

// is tells whether a schema has an extension that is true.
func (c *structural) is(s map[string]any, extension string) bool {
	return s[c.extension+extension] == true
}

// keywords checks keywords that have the same meaning everywhere.
func (c *structural) keywords(s map[string]any, at *field.Path) {
	for name, kind := range keywordTypes {
		if value, given := s[name]; given && value != nil && !isOf(value, kind) {
			c.TypeInvalid(at.Field(name), value, "must be of type "+kind)
		}
	}
	for _, name := range refused {
		if value, given := s[name]; given && value != "" {
			c.Forbidden(at.Field(name), name+" is not supported")
		}
	}
	if pattern := text(s, "pattern"); pattern != "" {
		if _, err := regexp.Compile(pattern); err != nil {
			c.Invalid(at.Field("pattern"), pattern, "must be a valid regular expression, but isn't: "+err.Error())
		}
	}
	if s["uniqueItems"] == true {
		c.Forbidden(at.Field("uniqueItems"), "uniqueItems cannot be set to true, because its cost grows with the square of the length")
	}
	if s["additionalProperties"] == false {
		c.Forbidden(at.Field("additionalProperties"), "additionalProperties cannot be set to false")
	} else if s["additionalProperties"] != nil && len(child(s, "properties")) > 0 {
		c.Forbidden(at.Field("additionalProperties"), "additionalProperties and properties are mutually exclusive")
	}
	if _, isList := s["items"].([]any); isList {
		c.Forbidden(at.Field("items"), "items must be a schema object and not an array")
	}
}

func isOf(value any, kind string) bool {
	switch value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case int64, float64:
		return kind == "number"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// kind checks the type, which every schema has that does not leave it open.
func (c *structural) kind(s map[string]any, where level, at *field.Path) {
	kind := text(s, "type")
	open := c.is(s, "int-or-string") || c.is(s, "preserve-unknown-fields")
	switch {
	case kind == "null":
		c.Forbidden(at.Field("type"), "type cannot be set to null, use nullable as an alternative")
	case kind != "" && !slices.Contains(knownTypes, kind):
		c.NotSupported(at.Field("type"), kind, knownTypes...)
	case c.is(s, "embedded-resource") && kind != "object":
		c.Required(at.Field("type"), "must be object if "+c.extension+"embedded-resource is true")
	case kind == "" && !open:
		c.Required(at.Field("type"), "must not be empty "+[]string{"at the root", "for specified array items", "for specified object fields"}[where])
	case where == atRoot && kind != "" && kind != "object":
		c.Invalid(at.Field("type"), kind, "must be object at the root")
	case kind == "array" && s["items"] == nil:
		c.Required(at.Field("items"), "must be specified")
	}
	if where == atRoot && s["additionalProperties"] != nil {
		c.Forbidden(at.Field("additionalProperties"), "must not be used at the root")
	}
}

// extensions checks what the extensions are allowed to say together.
func (c *structural) extensions(s map[string]any, at *field.Path) {
	for _, name := range []string{"preserve-unknown-fields", "embedded-resource"} {
		if c.is(s, "int-or-string") && c.is(s, name) {
			c.Invalid(at.Field(c.extension+name), true, "must be false if "+c.extension+"int-or-string is true")
		}
	}
	if s[c.extension+"preserve-unknown-fields"] == false {
		c.Invalid(at.Field(c.extension+"preserve-unknown-fields"), false, "must be true or undefined")
	}
	if !c.is(s, "embedded-resource") {
		return
	}
	if s["additionalProperties"] != nil {
		c.Forbidden(at.Field("additionalProperties"), "must not be used if "+c.extension+"embedded-resource is set")
	}
	if len(child(s, "properties")) == 0 && !c.is(s, "preserve-unknown-fields") {
		c.Required(at.Field("properties"), "must not be empty if "+c.extension+"embedded-resource is true without "+c.extension+"preserve-unknown-fields")
	}
}

// metadata checks what a schema says of the fields that every object has. They are
// described already; only names can be restricted.
func (c *structural) metadata(s map[string]any, where level, at *field.Path) {
	properties := child(s, "properties")
	at = at.Field("properties")
	for _, name := range []string{"apiVersion", "kind"} {
		if m := child(properties, name); m != nil && m["type"] != "string" {
			c.Invalid(at.Entry(name).Field("type"), m["type"], "must be string")
		}
	}
	m, given := properties["metadata"].(map[string]any)
	if !given {
		return
	}
	at = at.Entry("metadata")
	if m["type"] != "object" {
		c.Invalid(at.Field("type"), m["type"], "must be object")
	}
	if where != atRoot {
		return
	}
	for name := range m {
		if name != "type" && name != "properties" && name != "description" && name != "default" {
			c.Forbidden(at, "must not specify anything other than name and generateName, but metadata is implicitly specified")
		}
	}
	for name := range child(m, "properties") {
		if name != "name" && name != "generateName" {
			c.Forbidden(at, "must not specify anything other than name and generateName, but metadata is implicitly specified")
		}
	}
}

// junctors join schemas to another one as conditions.
var junctors = []string{"allOf", "anyOf", "oneOf"}

// conditions checks the schemas that are joined to s: they say nothing of the shape
// that the schema around them, shape, does not say.
func (c *structural) conditions(s, shape map[string]any, at *field.Path) {
	for _, junctor := range junctors {
		if junctor == "anyOf" && isIntOrString(s["anyOf"]) {
			continue
		}
		for i, part := range children(s, junctor) {
			c.condition(part, shape, at.Field(junctor).Item(i))
		}
	}
	if not := child(s, "not"); not != nil {
		c.condition(not, shape, at.Field("not"))
	}
}

// isIntOrString tells whether the parts of an anyOf are the usual way to write that
// a value is an integer or a string.
func isIntOrString(anyOf any) bool {
	parts, _ := anyOf.([]any)
	if len(parts) != 2 {
		return false
	}
	first, second := asSchema(parts[0]), asSchema(parts[1])
	return len(first) == 1 && len(second) == 1 && first["type"] == "integer" && second["type"] == "string"
}

// condition checks a joined schema.
func (c *structural) condition(s, shape map[string]any, at *field.Path) {
	c.keywords(s, at)
	for _, name := range []string{"type", "additionalProperties", "default", "title", "description", "nullable"} {
		if value, given := s[name]; given && value != "" && value != false && value != nil {
			c.Forbidden(at.Field(name), "must be undefined to be structural")
		}
	}
	for _, name := range []string{"preserve-unknown-fields", "embedded-resource", "int-or-string", "list-map-keys", "list-type", "map-type"} {
		if value, given := s[c.extension+name]; given && value != false {
			c.Forbidden(at.Field(c.extension+name), "must be undefined to be structural")
		}
	}
	if items := child(s, "items"); items != nil {
		if child(shape, "items") == nil {
			c.Required(at.Field("items"), "must also be specified outside of the conditions")
		}
		c.condition(items, child(shape, "items"), at.Field("items"))
	}
	for name, property := range child(s, "properties") {
		below := at.Field("properties").Entry(name)
		if name == "metadata" {
			c.Forbidden(below, "must not be specified in a nested context")
		}
		outside := child(child(shape, "properties"), name)
		if outside == nil {
			c.Required(below, fmt.Sprintf("properties[%s] must also be specified outside of the conditions", name))
		}
		c.condition(asSchema(property), outside, below)
	}
	c.conditions(s, shape, at)
}
