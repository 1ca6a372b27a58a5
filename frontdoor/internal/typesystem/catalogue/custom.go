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

// With returns a catalogue with custom types. It shares all built-in types with c, which is
// not modified. A surface is added completely or not at all: it is skipped if one of its
// types has a name that a built-in type or an earlier surface of the same group uses, in
// any version.
func (c *Catalogue) With(customTypes ...Surface) *Catalogue {
	more := &Catalogue{
		builtIn: c.base(), reserved: c.reserved, order: c.order,
		types: map[typeID]*Type{}, kinds: map[kindID]*Type{},
		stored: maps.Clone(c.stored), definitions: maps.Clone(c.definitions), bodies: maps.Clone(c.bodies),
	}
	var served []*Type
	for _, g := range c.groups {
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
	more.index(served)
	more.converter = func() (managedfields.TypeConverter, error) { return combined{c.converter, converters}, nil }
	return more
}

// define adds the schemas of an accepted surface.
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

// claim is a name in a group that a surface uses, as a resource or as a kind.
type claim struct {
	group, name string
	kind        bool
}

// accepts reports whether no built-in type and no earlier surface uses a name of the
// surface. If so, it adds the surface's names to taken.
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

// converterOf returns a function that builds the converter of one custom type at the first
// call. Without a schema, the type is deduced from the JSON: members are fields, and lists
// are atomic.
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

// collect adds all definitions that a schema refers to, directly or indirectly.
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

// combined is a converter for custom types that uses the built-in converter for all other
// objects.
type combined struct {
	builtIn func() (managedfields.TypeConverter, error)
	custom  map[schema.GroupVersionKind]func() (managedfields.TypeConverter, error)
}

// ObjectToTyped implements managedfields.TypeConverter.
func (c combined) ObjectToTyped(object runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	of := c.builtIn
	if custom, ok := c.custom[object.GetObjectKind().GroupVersionKind()]; ok {
		of = custom
	}
	converter, err := of()
	if err != nil {
		return nil, err
	}
	return converter.ObjectToTyped(object, o...)
}

// TypedToObject implements managedfields.TypeConverter; it does not depend on the type.
func (c combined) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewDeducedTypeConverter().TypedToObject(value)
}

var _ managedfields.TypeConverter = combined{}
