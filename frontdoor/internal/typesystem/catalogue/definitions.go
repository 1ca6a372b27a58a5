package catalogue

import (
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions are schemas by name. Those of built-in and of custom types are made when they are
// needed first: most of them never are. They may be used concurrently.
type Definitions map[string]*Definition

// Definition is a schema: given, or made at the first call of Get.
type Definition struct {
	packed string // with the original names
	names  *originalNames
	make   func() *spec.Schema // nil for given and packed ones
	kind   kindID              // of those that make makes
	once   sync.Once
	schema atomic.Pointer[spec.Schema]
}

// Given returns the definition of a schema.
func Given(s *spec.Schema) *Definition {
	d := &Definition{}
	d.schema.Store(s)
	return d
}

// Lazy returns the definition of a kind of a custom type, whose schema make returns: one that
// names this kind and no other, each time the same one.
func Lazy(group, version, kind string, make func() *spec.Schema) *Definition {
	return &Definition{kind: kindID{group, version, kind}, make: make}
}

// Get returns the schema of this name; nil for none. The caller must not modify it.
func (d Definitions) Get(name string) *spec.Schema { return d[name].get() }

// Read is Get for a caller that reads a schema once, as documents of all types do: the schema of
// a custom type that nothing else needs is not kept. The caller may then modify it: it is its own.
func (d Definitions) Read(name string) (s *spec.Schema, own bool) {
	one := d[name]
	if one == nil || one.make == nil || one.schema.Load() != nil {
		return one.get(), false
	}
	return one.make(), true
}

// All returns all names and schemas, and decodes them.
func (d Definitions) All() iter.Seq2[string, *spec.Schema] {
	return func(yield func(string, *spec.Schema) bool) {
		for name, one := range d {
			if !yield(name, one.get()) {
				return
			}
		}
	}
}

func (d *Definition) get() *spec.Schema {
	if d == nil {
		return nil
	}
	d.once.Do(func() {
		switch {
		case d.make != nil:
			d.schema.Store(d.make())
		case d.packed != "":
			d.schema.Store(d.unpack())
		}
	})
	return d.schema.Load()
}

func (d *Definition) unpack() *spec.Schema {
	schema := &spec.Schema{}
	if err := json.Unmarshal([]byte(d.packed), schema); err != nil {
		panic(fmt.Sprintf("a packed schema: %v", err)) // the program is damaged: a test decodes all of them
	}
	d.names.rename(schema)
	d.names.renameKinds(schema)
	return schema
}
