// Package fields knows the fields of objects as field managers own them, without
// the cost of the field-set library: sets of fields are trees in the form in which
// they are recorded (fieldsV1), and the schema of a type is compiled once. It says
// which fields a configuration names, which fields differ between two objects, and
// how a configuration is merged into an object.
//
// It answers only where it is sure to answer as the library does, and says so when
// it is not: for values that do not fit their type, nulls, duplicate items of
// lists, and types without a schema. It never changes what it is given. It serves
// "Server-side apply" and "Managed-fields entry" of the specification.
package fields

import (
	"cmp"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// shape is what values of a type are.
type shape uint8

const (
	unclear shape = iota // not known well enough
	scalar
	object
	list
)

// Type is a compiled schema. It is immutable and may be used concurrently; types
// that contain themselves make cycles.
type Type struct {
	shape  shape
	scalar schema.Scalar
	// atomic objects and lists are owned as a whole.
	atomic bool
	fields map[string]*Type
	// item is the type of a list's items, and of an object's undeclared fields; nil
	// where these are not allowed.
	item *Type
	// keys tell the items of a list apart; without any they are a set of scalars.
	keys []key
}

// key is a field that tells items apart, and the value of one that is left out; nil
// when it has none.
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

// name is a reference to a definition: with or without a relationship of its own.
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

// field returns the type of a field; nil when there can be none of that name.
func (t *Type) field(name string) *Type {
	if f := t.fields[name]; f != nil {
		return f
	}
	return t.item
}

// fits reports whether a value is what its type asks for, all the way down; when it
// must be distinct, without items that are given twice.
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
		return t.atomic || t.tellApart(v, distinct)
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
