package catalogue

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// With returns a catalogue that has custom types too, and shares everything
// built-in with c, which stays as it is. The types of a surface are taken together
// or not at all: where one of them asks for a name that a built-in type or an
// earlier surface of the group has, in whatever version, none of them is there.
func (c *Catalogue) With(customTypes ...Surface) *Catalogue {
	more := &Catalogue{
		builtIn: c.base(), reserved: c.reserved,
		types: map[typeID]*Type{}, kinds: map[kindID]*Type{},
		stored: maps.Clone(c.stored), definitions: maps.Clone(c.definitions), bodies: maps.Clone(c.bodies),
	}
	var order []string
	var served []*Type
	for _, g := range c.groups {
		order = append(order, g.Name)
		for _, v := range g.Versions {
			served = append(served, v.Types...)
		}
	}
	converters := map[schema.GroupVersionKind]func() (managedfields.TypeConverter, error){}
	taken := map[claim]bool{}
	for _, custom := range customTypes {
		if !c.accepts(custom, taken) {
			continue
		}
		more.define(custom.Definitions)
		for _, t := range custom.Types {
			served = append(served, t)
			more.stored[t.Key] = t.Stored
			converters[schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}] = more.converterOf(t)
		}
	}
	more.index(served, order)
	more.converter = func() (managedfields.TypeConverter, error) { return joined{c.converter, converters}, nil }
	return more
}

// define adds the schemas of a surface that was accepted.
func (c *Catalogue) define(definitions map[string]*spec.Schema) {
	for name, s := range definitions {
		c.definitions[name] = s
		for _, id := range kindsOf(s) {
			if c.bodies[id] == "" {
				c.bodies[id] = name
			}
		}
	}
}

// claim is a name in a group that one surface has, for a resource or for a kind.
type claim struct {
	group, name string
	kind        bool
}

// accepts reports whether neither the built-in types nor an earlier surface have a
// name that the surface asks for, and takes note of its names.
func (c *Catalogue) accepts(custom Surface, taken map[claim]bool) bool {
	claims := map[claim]bool{}
	for _, t := range custom.Types {
		resources := append([]string{t.Resource, t.Singular}, t.ShortNames...)
		reserved := c.Reserved(t.Group)
		if !t.Key.Custom || slices.ContainsFunc(resources, reserved.Resource) || reserved.Kind(t.Kind) || reserved.Kind(t.ListKind) {
			return false
		}
		claims[claim{t.Group, t.Resource, false}], claims[claim{t.Group, t.Kind, true}] = true, true
	}
	for name := range custom.Definitions {
		if c.ReservedDefinition(name) {
			return false
		}
	}
	for name := range claims {
		if taken[name] {
			return false
		}
	}
	maps.Copy(taken, claims)
	return true
}

// converterOf returns what makes the converter of one custom type, at first use.
// Objects without a schema have what their JSON shows: keys are fields and lists
// are whole values.
func (c *Catalogue) converterOf(t *Type) func() (managedfields.TypeConverter, error) {
	return sync.OnceValues(func() (managedfields.TypeConverter, error) {
		if t.Schema == nil {
			return managedfields.NewDeducedTypeConverter(), nil
		}
		needed := map[string]*spec.Schema{t.Definition: t.Schema}
		c.collect(needed, t.Schema)
		return managedfields.NewTypeConverter(needed, false)
	})
}

// collect adds what a schema refers to, and so on.
func (c *Catalogue) collect(found map[string]*spec.Schema, s *spec.Schema) {
	if s == nil {
		return
	}
	if name, ok := strings.CutPrefix(s.Ref.String(), definitionsPointer); ok && found[name] == nil && c.definitions[name] != nil {
		found[name] = c.definitions[name]
		c.collect(found, found[name])
	}
	for _, property := range s.Properties {
		c.collect(found, &property)
	}
	for i := range s.AllOf {
		c.collect(found, &s.AllOf[i])
	}
	if s.Items != nil {
		c.collect(found, s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		c.collect(found, s.AdditionalProperties.Schema)
	}
}

// joined is a converter for custom types and, for all other objects, the one that
// all catalogues share.
type joined struct {
	builtIn func() (managedfields.TypeConverter, error)
	custom  map[schema.GroupVersionKind]func() (managedfields.TypeConverter, error)
}

// ObjectToTyped returns the object as a typed value.
func (j joined) ObjectToTyped(object runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	of := j.builtIn
	if custom, ok := j.custom[object.GetObjectKind().GroupVersionKind()]; ok {
		of = custom
	}
	converter, err := of()
	if err != nil {
		return nil, err
	}
	return converter.ObjectToTyped(object, o...)
}

// TypedToObject is the way back, which is the same for all types.
func (j joined) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewDeducedTypeConverter().TypedToObject(value)
}

var _ managedfields.TypeConverter = joined{}
