package custom

import (
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
)

// listType checks how lists and maps are merged: what a list's items are told apart
// by must be there in every item.
func (c *structural) listType(s map[string]any, at *field.Path) {
	kind, ofList := s[c.extension+"list-type"], at.Field(c.extension+"list-type")
	switch kind {
	case nil:
	case "atomic", "set", "map":
		if s["type"] != "array" {
			c.Invalid(at.Field("type"), s["type"], "must be array if "+c.extension+"list-type is specified")
		}
	default:
		c.NotSupported(ofList, kind, "atomic", "set", "map")
	}
	switch of := s[c.extension+"map-type"]; of {
	case nil:
	case "atomic", "granular":
		if s["type"] != "object" {
			c.Invalid(at.Field("type"), s["type"], "must be object if "+c.extension+"map-type is specified")
		}
	default:
		c.NotSupported(at.Field(c.extension+"map-type"), of, "atomic", "granular")
	}
	items := child(s, "items")
	keys := texts(s, c.extension+"list-map-keys")
	if kind != "map" && len(keys) > 0 {
		c.Forbidden(at.Field(c.extension+"list-map-keys"), "may only be specified if "+c.extension+"list-type is map")
	}
	if (kind == "map" || kind == "set") && items["nullable"] == true {
		c.Forbidden(at.Field("items").Field("nullable"), "cannot be nullable when "+c.extension+"list-type is "+kind.(string))
	}
	switch kind {
	case "map":
		c.listMap(s, keys, at)
	case "set":
		c.listSet(items, at.Field("items"))
	}
}

// listMap checks a list whose items are told apart by some of their fields.
func (c *structural) listMap(s map[string]any, keys []string, at *field.Path) {
	where := at.Field(c.extension + "list-map-keys")
	if len(keys) == 0 {
		c.Required(where, "must not be empty if "+c.extension+"list-type is map")
	}
	items := child(s, "items")
	if items != nil && items["type"] != "object" {
		c.Invalid(at.Field("items").Field("type"), items["type"], "must be object if parent array's "+c.extension+"list-type is map")
		return
	}
	properties := child(items, "properties")
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			c.Duplicate(where.Item(i), key)
			continue
		}
		property := child(properties, key)
		below := at.Field("items").Field("properties").Entry(key)
		switch {
		case property == nil:
			c.Invalid(where.Item(i), key, "must be the name of a property of the items")
			continue
		case property["type"] == "object" || property["type"] == "array":
			c.Invalid(below.Field("type"), property["type"], "must be a scalar type if parent array's "+c.extension+"list-type is map")
		case property["nullable"] == true:
			c.Forbidden(below.Field("nullable"), "this property is in "+c.extension+"list-map-keys, so it cannot be nullable")
		}
		if property["default"] == nil && !slices.Contains(texts(items, "required"), key) {
			c.Required(below.Field("default"), "this property is in "+c.extension+"list-map-keys, so it must have a default or be a required property")
		}
	}
}

// listSet checks a list whose items are told apart as a whole.
func (c *structural) listSet(items map[string]any, at *field.Path) {
	switch items["type"] {
	case "object":
		if items[c.extension+"map-type"] != "atomic" {
			c.Invalid(at.Field(c.extension+"map-type"), items[c.extension+"map-type"], "must be atomic as item of a list with "+c.extension+"list-type=set")
		}
	case "array":
		if of := items[c.extension+"list-type"]; of != nil && of != "atomic" {
			c.Invalid(at.Field(c.extension+"list-type"), of, "must be atomic as item of a list with "+c.extension+"list-type=set")
		}
	}
}
