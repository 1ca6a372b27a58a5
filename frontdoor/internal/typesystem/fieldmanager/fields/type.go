// Package fields computes sets of fields for managed fields without the cost of the
// field-set library: sets are trees in their recorded form (fieldsV1), and the schema of a
// type is compiled once. It computes the fields of a configuration, the fields that differ
// between two objects, and the merge of a configuration into an object.
//
// Its functions return false where their result could differ from the library's: for values
// that do not match their type, nulls, duplicate items of lists, and types without a
// schema. It never modifies its arguments. It serves "Server-side apply" and
// "Managed-fields entry" of the specification.
package fields

import (
	"cmp"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// shape is the class of a type's values.
type shape uint8

const (
	unclear shape = iota // not covered by this package
	scalar
	object
	list
)

// Type is a compiled schema. It may be used concurrently; recursive types
// make cycles.
type Type struct {
	shape  shape
	scalar schema.Scalar
	// atomic objects and lists are owned as a whole.
	atomic bool
	fields map[string]*Type
	// item is the type of a list's items, or of an object's undeclared fields; nil if these
	// are not allowed.
	item *Type
	// keys identify the items of a list; a list without keys is a set of scalars.
	keys []key
	// usual are the trees of earlier values.
	usual usual
}

// key is a field that identifies items, with its default value; nil if it has none.
type key struct {
	name    string
	initial any
}

// Compile returns the type that a schema refers to.
func Compile(s *schema.Schema, ref schema.TypeRef) *Type {
	c := compiler{schema: s, named: map[name]*Type{}}
	return c.compile(ref)
}

type compiler struct {
	schema *schema.Schema
	named  map[name]*Type
}

// name is a reference to a definition, with the relationship that overrides the
// definition's own; "" for none.
type name struct {
	definition   string
	relationship schema.ElementRelationship
}

func (c *compiler) compile(ref schema.TypeRef) *Type {
	t := &Type{}
	if ref.NamedType != nil {
		n := name{definition: *ref.NamedType}
		if ref.ElementRelationship != nil {
			n.relationship = *ref.ElementRelationship
		}
		if known := c.named[n]; known != nil {
			return known
		}
		c.named[n] = t
	}
	atom, ok := c.schema.Resolve(ref)
	switch {
	case !ok:
	case atom.Scalar != nil && atom.Map == nil && atom.List == nil:
		t.shape, t.scalar = scalar, *atom.Scalar
	case atom.Map != nil && atom.Scalar == nil && atom.List == nil:
		c.object(t, atom.Map)
	case atom.List != nil && atom.Scalar == nil && atom.Map == nil:
		c.list(t, atom.List)
	}
	return t
}

func (c *compiler) object(t *Type, m *schema.Map) {
	t.shape, t.atomic = object, m.ElementRelationship == schema.Atomic
	t.fields = make(map[string]*Type, len(m.Fields))
	for _, f := range m.Fields {
		t.fields[f.Name] = c.compile(f.Type)
	}
	if (m.ElementType != schema.TypeRef{}) {
		t.item = c.compile(m.ElementType)
	}
}

func (c *compiler) list(t *Type, l *schema.List) {
	switch l.ElementRelationship {
	case schema.Atomic:
		t.atomic = true
	case schema.Associative:
	default:
		return
	}
	items, ok := c.schema.Resolve(l.ElementType)
	if !ok || len(l.Keys) > 0 && items.Map == nil {
		return
	}
	for _, name := range l.Keys {
		field, _ := items.Map.FindField(name)
		t.keys = append(t.keys, key{name, field.Default})
	}
	slices.SortFunc(t.keys, func(a, b key) int { return cmp.Compare(a.name, b.name) })
	t.shape, t.item = list, c.compile(l.ElementType)
}

// field returns the type of a field; nil if the type does not allow it.
func (t *Type) field(name string) *Type {
	if f := t.fields[name]; f != nil {
		return f
	}
	return t.item
}

// fits reports whether a value and all values below it match the type; if distinct is set,
// also whether lists have no duplicate items.
func (t *Type) fits(value any, distinct bool) bool {
	if value == nil {
		return t.shape != unclear
	}
	switch v := value.(type) {
	case map[string]any:
		if t.shape != object {
			return false
		}
		for name, below := range v {
			if f := t.field(name); f == nil || !f.fits(below, distinct) {
				return false
			}
		}
		return true
	case []any:
		if t.shape != list {
			return false
		}
		for _, item := range v {
			if !t.item.fits(item, distinct) {
				return false
			}
		}
		return t.atomic || t.keyed(v, distinct)
	}
	return t.shape == scalar && t.fitsScalar(value)
}

func (t *Type) fitsScalar(value any) bool {
	switch value.(type) {
	case string:
		return t.scalar == schema.String || t.scalar == schema.Untyped
	case bool:
		return t.scalar == schema.Boolean || t.scalar == schema.Untyped
	case int64, float64:
		return t.scalar == schema.Numeric || t.scalar == schema.Untyped
	}
	return false
}
