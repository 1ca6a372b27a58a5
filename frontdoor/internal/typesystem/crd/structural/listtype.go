package structural

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// listType validates list-type, map-type and list-map-keys: the keys that identify an item
// must be present in every item.
func (c *Schemas) listType(s map[string]any, at *field.Path) {
	kind, ofList := s[c.Extension+"list-type"], at.Field(c.Extension+"list-type")
	switch kind {
	case nil, "atomic", "set", "map":
	default:
		c.others.NotSupported(ofList, kind, "atomic", "set", "map")
	}
	if kind != nil {
		c.mustBe("array", s, at, "must be array if "+c.Extension+"list-type is specified")
	}
	switch of := s[c.Extension+"map-type"]; of {
	case nil, "atomic", "granular":
	default:
		c.others.NotSupported(at.Field(c.Extension+"map-type"), of, "atomic", "granular")
	}
	if s[c.Extension+"map-type"] != nil {
		c.mustBe("object", s, at, "must be object if "+c.Extension+"map-type is specified")
	}
	items := rules.Object(s, "items")
	keys := rules.Texts(s, c.Extension+"list-map-keys")
	if kind != "map" && len(keys) > 0 {
		if why := "must be map if " + c.Extension + "list-map-keys is non-empty"; kind == nil {
			c.others.Required(ofList, why)
		} else {
			c.others.Invalid(ofList, kind, why)
		}
	}
	if (kind == "map" || kind == "set") && items["nullable"] == true {
		c.others.Forbidden(at.Field("items").Field("nullable"), "cannot be nullable when "+c.Extension+"list-type is "+kind.(string))
	}
	switch kind {
	case "map":
		c.listMap(s, keys, at)
	case "set":
		c.listSet(items, at.Field("items"))
	}
}

// mustBe requires a type of a schema.
func (c *Schemas) mustBe(kind string, s map[string]any, at *field.Path, why string) {
	switch s["type"] {
	case kind:
	case nil, "":
		c.others.Required(at.Field("type"), why)
	default:
		c.others.Invalid(at.Field("type"), s["type"], why)
	}
}

// listMap validates a list whose items are identified by some of their fields.
func (c *Schemas) listMap(s map[string]any, keys []string, at *field.Path) {
	where := at.Field(c.Extension + "list-map-keys")
	if len(keys) == 0 {
		c.others.Required(where, "must not be empty if "+c.Extension+"list-type is map")
	}
	items := rules.Object(s, "items")
	if items != nil && items["type"] != "object" {
		c.others.Invalid(at.Field("items").Field("type"), rules.Text(items, "type"), "must be object if parent array's "+c.Extension+"list-type is map")
		return
	}
	properties := rules.Object(items, "properties")
	required := map[string]bool{}
	for _, name := range rules.Texts(items, "required") {
		required[name] = true
	}
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			c.others.Invalid(where, keys, "must not contain duplicate entries")
			continue
		}
		seen[key] = true
		property := rules.Object(properties, key)
		below := at.Field("items").Field("properties").Entry(key)
		switch {
		case property == nil:
			c.others.Invalid(where, keys, "entries must all be names of item properties")
			continue
		case property["type"] == "object" || property["type"] == "array":
			c.others.Invalid(below.Field("type"), property["type"], "must be a scalar type if parent array's "+c.Extension+"list-type is map")
		case property["nullable"] == true:
			c.others.Forbidden(below.Field("nullable"), "this property is in "+c.Extension+"list-map-keys, so it cannot be nullable")
		}
		if property["default"] == nil && !required[key] {
			c.others.Required(below.Field("default"), "this property is in "+c.Extension+"list-map-keys, so it must have a default or be a required property")
		}
	}
}

// listSet validates a list whose items are identified by their whole value.
func (c *Schemas) listSet(items map[string]any, at *field.Path) {
	switch items["type"] {
	case "object":
		if items[c.Extension+"map-type"] != "atomic" {
			c.others.Invalid(at.Field(c.Extension+"map-type"), items[c.Extension+"map-type"], "must be atomic as item of a list with "+c.Extension+"list-type=set")
		}
	case "array":
		if of := items[c.Extension+"list-type"]; of != nil && of != "atomic" {
			c.others.Invalid(at.Field(c.Extension+"list-type"), of, "must be atomic as item of a list with "+c.Extension+"list-type=set")
		}
	}
}
