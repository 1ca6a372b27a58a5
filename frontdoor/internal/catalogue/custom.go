package catalogue

import (
	"cmp"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// With returns a catalogue that has custom types too, and shares everything
// built-in with c, which stays as it is. Where a custom type asks for the resource
// or the kind of a type that is there already, that one stays.
func (c *Catalogue) With(customs ...Surface) *Catalogue {
	more := &Catalogue{
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
	for _, custom := range customs {
		more.define(custom.Definitions)
		for _, t := range custom.Types {
			if !more.accepts(c, t) {
				continue
			}
			served = append(served, t)
			more.stored[t.Key] = t.Stored
			converters[schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}] = more.converterOf(t)
		}
	}
	more.index(served, order)
	more.converter = func() (managedfields.TypeConverter, error) { return joined{c.converter, converters}, nil }
	return more
}

// define adds schemas; those that are there already stay.
func (c *Catalogue) define(definitions map[string]*spec.Schema) {
	for name, s := range definitions {
		if c.definitions[name] != nil {
			continue
		}
		c.definitions[name] = s
		for _, id := range kindsOf(s) {
			if c.bodies[id] == "" {
				c.bodies[id] = name
			}
		}
	}
}

// accepts tells whether neither the built-in types nor an earlier custom one have
// what t asks for, and takes note of it.
func (c *Catalogue) accepts(builtIn *Catalogue, t *Type) bool {
	id, kind := typeID{t.Group, t.Version, t.Resource}, kindID{t.Group, t.Version, t.Kind}
	if cmp.Or(builtIn.types[id], builtIn.kinds[kind], c.types[id], c.kinds[kind]) != nil {
		return false
	}
	c.types[id], c.kinds[kind] = t, t
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
