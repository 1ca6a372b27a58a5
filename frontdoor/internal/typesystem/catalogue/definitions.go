package catalogue

import (
	"encoding/json"
	"fmt"
	"iter"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions are schemas by name. Those of built-in types are decoded when they are needed
// first: most of them never are. They may be used concurrently.
type Definitions map[string]*definition

// definition is a schema: given, or packed and decoded at the first call of get.
type definition struct {
	packed string // with the original names
	names  *originalNames
	decode sync.Once
	schema *spec.Schema
}

// Get returns the schema of this name; nil for none. The caller must not modify it.
func (d Definitions) Get(name string) *spec.Schema { return d[name].get() }

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

func (d *definition) get() *spec.Schema {
	if d == nil {
		return nil
	}
	d.decode.Do(func() {
		if d.schema != nil {
			return
		}
		schema := &spec.Schema{}
		if err := json.Unmarshal([]byte(d.packed), schema); err != nil {
			panic(fmt.Sprintf("a packed schema: %v", err)) // the program is damaged: a test decodes all of them
		}
		d.names.rename(schema)
		d.names.renameKinds(schema)
		d.schema = schema
	})
	return d.schema
}
