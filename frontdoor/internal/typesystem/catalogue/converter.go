package catalogue

import (
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/portico-platform/portico/services/vocabulary"
)

// converter converts the objects of each kind with a converter that has only the
// definitions which that kind needs. It is built when it is needed first.
type converter struct {
	builtIn *Catalogue
	built   sync.Map // of the built-in kinds: by schema.GroupVersionKind, func() (managedfields.TypeConverter, error)
	custom  map[schema.GroupVersionKind]func() (managedfields.TypeConverter, error)
}

// of returns the converter of a kind.
func (c *converter) of(kind schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if custom, ok := c.custom[kind]; ok {
		return custom()
	}
	if of := c.builtIn.converter; of != c {
		return of.of(kind)
	}
	found, ok := c.built.Load(kind)
	if !ok {
		definition := c.builtIn.bodies[kindID{kind.Group, kind.Version, kind.Kind}]
		if definition == "" {
			return managedfields.NewTypeConverter(nil, false) // it has the error of a kind that does not exist
		}
		found, _ = c.built.LoadOrStore(kind, c.builtIn.converterOf(definition, func() *spec.Schema { return c.builtIn.definitions.Get(definition) }))
	}
	return found.(func() (managedfields.TypeConverter, error))()
}

// ObjectToTyped implements managedfields.TypeConverter.
func (c *converter) ObjectToTyped(object runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	of, err := c.of(object.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return of.ObjectToTyped(object, o...)
}

// TypedToObject implements managedfields.TypeConverter; it does not depend on the type.
func (c *converter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewDeducedTypeConverter().TypedToObject(value)
}

var _ managedfields.TypeConverter = (*converter)(nil)

// converterOf returns a function that builds the converter of one kind at the first call.
// Without a schema, the type is deduced from the JSON: members are fields, and lists
// are atomic.
func (c *Catalogue) converterOf(definition string, of func() *spec.Schema) func() (managedfields.TypeConverter, error) {
	return sync.OnceValues(func() (managedfields.TypeConverter, error) {
		s := of()
		if s == nil {
			return managedfields.NewDeducedTypeConverter(), nil
		}
		needed := map[string]*spec.Schema{definition: s}
		c.collect(needed, s)
		return managedfields.NewTypeConverter(needed, false)
	})
}

// collect adds all definitions that a schema refers to, directly or indirectly.
func (c *Catalogue) collect(found map[string]*spec.Schema, s *spec.Schema) {
	if s == nil {
		return
	}
	if name, ok := strings.CutPrefix(s.Ref.String(), definitionsPointer); ok && found[name] == nil && c.definitions[name] != nil {
		found[name] = forOwnership(name, c.definitions.Get(name))
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

// forOwnership returns a definition in the form that the managed fields library needs: it
// recognizes the definitions of Quantity and RawExtension by their original names, and would
// take the schemas of another vocabulary literally. It also identifies items of lists
// without a key by the key's default.
func forOwnership(name string, s *spec.Schema) *spec.Schema {
	switch {
	case strings.HasSuffix(name, ".apimachinery.pkg.api.resource.Quantity"):
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}, Format: "int-or-string"}}
	case strings.HasSuffix(name, ".apimachinery.pkg.runtime.RawExtension"):
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}},
			VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{vocabulary.K8s().Extension + "map-type": "atomic"}}}
	}
	zeros := zeroDefaults(s)
	if len(zeros) == 0 {
		return s
	}
	adapted := *s
	adapted.Properties = maps.Clone(s.Properties)
	for field, zero := range zeros {
		property := adapted.Properties[field]
		property.Default = zero
		adapted.Properties[field] = property
	}
	return &adapted
}

// zeroDefaults returns the defaults of the scalars that every object has, which are their
// zero values. The document of 1.21 lacks them.
func zeroDefaults(s *spec.Schema) map[string]any {
	zeros := map[string]any{}
	for _, field := range s.Required {
		property := s.Properties[field]
		zero := map[string]any{"string": "", "integer": int64(0), "boolean": false}
		if len(property.Type) == 1 && property.Default == nil && zero[property.Type[0]] != nil {
			zeros[field] = zero[property.Type[0]]
		}
	}
	return zeros
}
