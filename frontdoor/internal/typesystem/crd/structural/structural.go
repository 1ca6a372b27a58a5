// Package structural validates the schemas of custom types. A schema is structural if the
// fields of an object and their types can be determined without its combinators (allOf,
// anyOf, oneOf, not). The package validates schemas alone, never objects or definitions. It
// serves "Removals" of the specification: the requirements for definitions of v1.
package structural

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Schemas validates schemas and collects the errors.
type Schemas struct {
	field.Errors // for which a schema is not structural
	// Extension is the prefix of extensions, for example "x-kubernetes-".
	Extension string

	unsupported bool         // a keyword that no schema may have is used
	others      field.Errors // of single keywords and types of lists and maps
	faulty      []string     // paths of the schemas that have these
}

// IsStructural reports whether the schemas are structural. Their defaults and rules are looked at then, also if
// something else is wrong with them.
func (c *Schemas) IsStructural() bool { return !c.unsupported && !c.Any() }

// Faulty returns the paths of the schemas to which the errors of Others belong.
func (c *Schemas) Faulty() []string { return c.faulty }

// Others returns the errors that leave the schemas structural.
func (c *Schemas) Others() *field.Errors { return &c.others }

// level is the position of a schema in the one that contains it.
type level int

const (
	atRoot level = iota
	atItem
	atField
)

// knownTypes are the valid types of values.
var knownTypes = []string{"array", "boolean", "integer", "number", "object", "string"}

// refused are the keywords that schemas of definitions must not have.
var refused = []string{"$ref", "id", "definitions", "dependencies", "patternProperties", "additionalItems"}

// Check validates a schema. As in Kubernetes, one with keywords that no schema may have is not
// examined further.
func (c *Schemas) Check(s map[string]any, at *field.Path) {
	Each(s, nil, func(s map[string]any, _ *field.Path) { c.unsupported = c.unsupported || c.hasRefused(s) })
	if !c.unsupported {
		c.schema(s, atRoot, at)
		c.complete(s, at)
		return
	}
	Each(s, at, c.single)
	if !c.others.Any() { // $schema is the one without an error of its own
		c.Invalid(at, "", "OpenAPIV3Schema 'schema' is not supported")
	}
}

// hasRefused reports whether a schema has a keyword that no schema may have.
func (c *Schemas) hasRefused(s map[string]any) bool {
	_, isList := s["items"].([]any)
	return isList || s[c.Extension+"preserve-unknown-fields"] == false || slices.ContainsFunc(append([]string{"$schema"}, refused...), func(name string) bool {
		return s[name] != nil && s[name] != "" && !empty(s[name])
	})
}

// CheckKeywords validates only that the keywords of a schema are allowed and have the right
// types: old schemas need not be structural.
func (c *Schemas) CheckKeywords(s map[string]any, at *field.Path) { Each(s, at, c.keywords) }

// schema validates a schema and those below it.
func (c *Schemas) schema(s map[string]any, where level, at *field.Path) {
	c.single(s, at)
	c.kind(s, where, at)
	c.extensions(s, at)
	for name, property := range rules.Object(s, "properties") {
		c.schema(asSchema(property), atField, at.Field("properties").Entry(name))
	}
	if items := rules.Object(s, "items"); items != nil {
		c.schema(items, atItem, at.Field("items"))
	}
	if values := rules.Object(s, "additionalProperties"); values != nil {
		c.schema(values, atField, at.Field("additionalProperties"))
	}
	if where == atRoot || c.is(s, "embedded-resource") {
		c.metadata(s, where, at)
	}
	c.conditions(s, at)
}

// single validates what a schema says by itself.
func (c *Schemas) single(s map[string]any, at *field.Path) {
	before := c.others.Count()
	c.keywords(s, at)
	c.listType(s, at)
	if c.others.Count() > before {
		c.faulty = append(c.faulty, at.String())
	}
}

// IsExtended reports whether a schema uses an extension: it must be structural then.
func (c *Schemas) IsExtended(s map[string]any) (found bool) {
	Each(s, nil, func(s map[string]any, _ *field.Path) {
		for name := range s {
			found = found || strings.HasPrefix(name, c.Extension)
		}
	})
	return found
}

// CheckBesideStatus validates the root of a schema of a type with the status subresource:
// the status is validated alone, so the root must not restrict the object as a whole.
func (c *Schemas) CheckBesideStatus(s map[string]any, at *field.Path) {
	if kind := rules.Text(s, "type"); kind != "" && kind != "object" {
		c.others.Invalid(at.Field("type"), kind, `only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)
		return
	}
	for _, name := range []string{"id", "$schema", "$ref", "nullable", "default", "enum", "maxProperties", "minProperties",
		"allOf", "oneOf", "anyOf", "not", "additionalProperties", "patternProperties", "dependencies", "additionalItems", "definitions"} {
		if value, given := s[name]; given && value != nil && value != "" && value != false {
			c.others.Invalid(at, name, "only properties, required, description and what is said of single values are allowed at the root of the schema if the status subresource is enabled")
			return
		}
	}
}

// asSchema returns a value as a schema; nil if it is not an object.
func asSchema(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

// is reports whether an extension of a schema is true.
func (c *Schemas) is(s map[string]any, extension string) bool {
	return s[c.Extension+extension] == true
}

// keywords validates the keywords that have the same meaning in all positions.
func (c *Schemas) keywords(s map[string]any, at *field.Path) {
	for _, name := range refused {
		if value := s[name]; value != nil && (value != "" || name == "$ref") && !(empty(value) && (name == "definitions" || name == "patternProperties")) {
			c.others.Forbidden(at.Field(name), name+" is not supported")
		}
	}
	if kind := rules.Text(s, "type"); kind != "" && !slices.Contains(knownTypes, kind) {
		c.others.NotSupported(at.Field("type"), kind, knownTypes...)
		if kind == "null" {
			c.others.Forbidden(at.Field("type"), "type cannot be set to null, use nullable as an alternative")
		}
	}
	if s[c.Extension+"preserve-unknown-fields"] == false {
		c.others.Invalid(at.Field(c.Extension+"preserve-unknown-fields"), false, "must be true or undefined")
	}
	if pattern := rules.Text(s, "pattern"); pattern != "" {
		if _, err := regexp.Compile(pattern); err != nil {
			c.others.Invalid(at.Field("pattern"), pattern, "must be a valid regular expression, but isn't: "+err.Error())
		}
	}
	if s["uniqueItems"] == true {
		c.others.Forbidden(at.Field("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
	}
	if values := s["additionalProperties"]; values != nil && values != true && len(rules.Object(s, "properties")) > 0 {
		c.others.Forbidden(at.Field("additionalProperties"), "additionalProperties and properties are mutual exclusive")
	}
	if _, isList := s["items"].([]any); isList {
		c.others.Forbidden(at.Field("items"), "items must be a schema object and not an array")
	}
}

// empty reports whether a value is an object without fields.
func empty(value any) bool {
	m, ok := value.(map[string]any)
	return ok && len(m) == 0
}

// kind validates the type, which is required unless an extension leaves it open.
func (c *Schemas) kind(s map[string]any, where level, at *field.Path) {
	kind := rules.Text(s, "type")
	open := c.is(s, "int-or-string") || c.is(s, "preserve-unknown-fields")
	switch {
	case c.is(s, "embedded-resource") && kind == "":
		c.Required(at.Field("type"), "must be object if "+c.Extension+"embedded-resource is true")
	case c.is(s, "embedded-resource") && kind != "object":
		c.Invalid(at.Field("type"), kind, "must be object if "+c.Extension+"embedded-resource is true")
	case kind == "" && !open:
		c.Required(at.Field("type"), "must not be empty "+[]string{"at the root", "for specified array items", "for specified object fields"}[where])
	}
	if where == atRoot && kind != "" && kind != "object" {
		c.Invalid(at.Field("type"), kind, "must be object at the root")
	}
	if kind == "array" && s["items"] == nil {
		c.Required(at.Field("items"), "must be specified")
	}
	if where == atRoot && s["nullable"] == true {
		c.Forbidden(at.Field("nullable"), "nullable cannot be true at the root")
	}
	if where == atRoot && s["additionalProperties"] != nil {
		c.Forbidden(at.Field("additionalProperties"), "must not be used at the root")
	}
}

// extensions validates the combinations of extensions.
func (c *Schemas) extensions(s map[string]any, at *field.Path) {
	for _, name := range []string{"preserve-unknown-fields", "embedded-resource"} {
		if c.is(s, "int-or-string") && c.is(s, name) {
			c.Invalid(at.Field(c.Extension+name), true, "must be false if "+c.Extension+"int-or-string is true")
		}
	}
	if !c.is(s, "embedded-resource") {
		return
	}
	if s["additionalProperties"] != nil {
		c.Forbidden(at.Field("additionalProperties"), "must not be used if "+c.Extension+"embedded-resource is set")
	}
	if len(rules.Object(s, "properties")) == 0 && !c.is(s, "preserve-unknown-fields") {
		c.Required(at.Field("properties"), "must not be empty if "+c.Extension+"embedded-resource is true without "+c.Extension+"preserve-unknown-fields")
	}
}

// metadata validates the schemas of the fields that every object has: the definition can
// only restrict the names.
func (c *Schemas) metadata(s map[string]any, where level, at *field.Path) {
	properties := rules.Object(s, "properties")
	at = at.Field("properties")
	for _, name := range []string{"apiVersion", "kind"} {
		if m := rules.Object(properties, name); m != nil && m["type"] != "string" {
			c.Invalid(at.Entry(name).Field("type"), rules.Text(m, "type"), "must be string")
		}
	}
	m, given := properties["metadata"].(map[string]any)
	if !given {
		return
	}
	at = at.Entry("metadata")
	if m["type"] != "object" {
		c.Invalid(at.Field("type"), rules.Text(m, "type"), "must be object")
	}
	if where != atRoot {
		return
	}
	Each(m, at, func(s map[string]any, at *field.Path) {
		if s["default"] != nil {
			c.Forbidden(at.Field("default"), "must not be set in top-level metadata")
		}
	})
	for name := range m {
		if name != "type" && name != "properties" && name != "default" {
			c.Forbidden(at, "must not specify anything other than name and generateName, but metadata is implicitly specified")
		}
	}
	for name := range rules.Object(m, "properties") {
		if name != "name" && name != "generateName" {
			c.Forbidden(at, "must not specify anything other than name and generateName, but metadata is implicitly specified")
		}
	}
}

// combinators are the keywords that combine schemas.
var combinators = []string{"allOf", "anyOf", "oneOf"}

// conditions validates the combined schemas of s: they must not define fields or types.
func (c *Schemas) conditions(s map[string]any, at *field.Path) {
	for _, combinator := range combinators {
		if combinator == "anyOf" && isIntOrString(s["anyOf"]) {
			continue
		}
		for i, part := range rules.Objects(s, combinator) {
			if combinator == "allOf" && i == 0 && c.is(s, "int-or-string") && isIntOrString(part["anyOf"]) {
				rest := maps.Clone(part)
				delete(rest, "anyOf")
				part = rest
			}
			c.condition(part, at.Field(combinator).Item(i))
		}
	}
	if not := rules.Object(s, "not"); not != nil {
		c.condition(not, at.Field("not"))
	}
}

// isIntOrString reports whether an anyOf is the usual one of an integer or a string.
func isIntOrString(anyOf any) bool {
	parts, _ := anyOf.([]any)
	if len(parts) != 2 {
		return false
	}
	first, second := asSchema(parts[0]), asSchema(parts[1])
	return len(first) == 1 && len(second) == 1 && first["type"] == "integer" && second["type"] == "string"
}

// forbiddenNested are the keywords that combined schemas must not have, with the value that
// they must have instead.
var forbiddenNested = map[string]string{
	"type": "empty", "title": "empty", "description": "empty", "default": "undefined", "additionalProperties": "undefined", "nullable": "false",
}

// forbiddenNestedExtensions are the extensions that combined schemas must not have.
var forbiddenNestedExtensions = map[string]string{
	"preserve-unknown-fields": "false", "embedded-resource": "false", "int-or-string": "false",
	"list-map-keys": "empty", "list-type": "undefined", "map-type": "undefined",
}

// condition validates a combined schema.
func (c *Schemas) condition(s map[string]any, at *field.Path) {
	before := c.others.Count()
	if c.keywords(s, at); c.others.Count() > before {
		c.faulty = append(c.faulty, at.String())
	}
	forbid := func(name, be string) {
		if value, given := s[name]; given && value != "" && value != false && value != nil {
			c.Forbidden(at.Field(name), "must be "+be+" to be structural")
		}
	}
	for name, be := range forbiddenNested {
		forbid(name, be)
	}
	for name, be := range forbiddenNestedExtensions {
		forbid(c.Extension+name, be)
	}
	if list, _ := s[c.Extension+"validations"].([]any); len(list) > 0 {
		c.Forbidden(at.Field(c.Extension+"validations"), "must be empty to be structural")
	}
	if items := rules.Object(s, "items"); items != nil {
		c.condition(items, at.Field("items"))
	}
	for name, property := range rules.Object(s, "properties") {
		below := at.Field("properties").Entry(name)
		if name == "metadata" {
			c.Forbidden(below, "must not be specified in a nested context")
		}
		c.condition(asSchema(property), below)
	}
	c.conditions(s, at)
}

// complete checks that combined schemas mention only fields that the root defines.
func (c *Schemas) complete(root map[string]any, at *field.Path) {
	c.completeIn(root, root, at, at)
}

// completeIn checks the combined schemas of s, at path in, against the schema shape, at
// path at.
func (c *Schemas) completeIn(s, shape map[string]any, in, at *field.Path) {
	for _, combinator := range combinators {
		for i, part := range rules.Objects(s, combinator) {
			c.described(part, shape, in.Field(combinator).Item(i), at)
		}
	}
	if not := rules.Object(s, "not"); not != nil {
		c.described(not, shape, in.Field("not"), at)
	}
}

// described checks that shape defines all fields and items that a combined schema mentions.
func (c *Schemas) described(s, shape map[string]any, in, at *field.Path) {
	if shape == nil {
		c.Required(at, "because it is defined in "+in.String())
		return
	}
	c.completeIn(s, shape, in, at)
	if items := rules.Object(s, "items"); items != nil {
		c.described(items, rules.Object(shape, "items"), in.Field("items"), at.Field("items"))
	}
	for name, property := range rules.Object(s, "properties") {
		c.described(asSchema(property), rules.Object(rules.Object(shape, "properties"), name),
			in.Field("properties").Entry(name), at.Field("properties").Entry(name))
	}
}

// Each calls visit for a schema and all schemas of fields, items and map values below it.
func Each(s map[string]any, where *field.Path, visit func(map[string]any, *field.Path)) {
	visit(s, where)
	for name, property := range rules.Object(s, "properties") {
		Each(asSchema(property), where.Field("properties").Entry(name), visit)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if below := rules.Object(s, name); below != nil {
			Each(below, where.Field(name), visit)
		}
	}
}
