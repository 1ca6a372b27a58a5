package harness

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Obj is a decoded JSON object.
type Obj map[string]any

// YAML parses a YAML (or JSON) text in the vocabulary in use.
func YAML(format string, args ...any) Obj {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	o := Obj{}
	if err := yaml.Unmarshal([]byte(N(text)), &o); err != nil {
		panic(fmt.Sprintf("suite: bad YAML in a check: %v\n%s", err, text))
	}
	return o
}

// At returns the value at a dotted path ("items.0.metadata.name"), or nil.
func (o Obj) At(path string) any {
	var v any = map[string]any(o)
	for _, key := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// Str returns the string at path, or "".
func (o Obj) Str(path string) string { s, _ := o.At(path).(string); return s }

// Num returns the number at path, or 0.
func (o Obj) Num(path string) float64 { n, _ := o.At(path).(float64); return n }

// Bool returns the boolean at path, or false.
func (o Obj) Bool(path string) bool { b, _ := o.At(path).(bool); return b }

// Map returns the object at path, or nil.
func (o Obj) Map(path string) Obj { m, _ := o.At(path).(map[string]any); return m }

// List returns the objects of the array at path.
func (o Obj) List(path string) (list []Obj) {
	items, _ := o.At(path).([]any)
	for _, it := range items {
		if m, ok := it.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

// Strs returns the strings of the array at path.
func (o Obj) Strs(path string) (list []string) {
	items, _ := o.At(path).([]any)
	for _, it := range items {
		if s, ok := it.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

// Has reports whether path exists.
func (o Obj) Has(path string) bool {
	i := strings.LastIndexByte(path, '.')
	parent := o
	if i >= 0 {
		parent = o.Map(path[:i])
	}
	_, ok := parent[path[i+1:]]
	return ok
}

// Set stores v at a dotted path, creating missing maps.
func (o Obj) Set(path string, v any) Obj {
	keys := strings.Split(path, ".")
	m := map[string]any(o)
	for _, k := range keys[:len(keys)-1] {
		next, ok := m[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[k] = next
		}
		m = next
	}
	m[keys[len(keys)-1]] = v
	return o
}

// Copy returns a deep copy.
func (o Obj) Copy() Obj {
	var c Obj
	if err := json.Unmarshal(o.JSON(), &c); err != nil {
		panic(err)
	}
	return c
}

// JSON returns o as JSON text.
func (o Obj) JSON() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

func (o Obj) String() string { return string(o.JSON()) }

// Name, RV and UID are the metadata fields used most.
func (o Obj) Name() string { return o.Str("metadata.name") }
func (o Obj) RV() string   { return o.Str("metadata.resourceVersion") }
func (o Obj) UID() string  { return o.Str("metadata.uid") }

// Names returns the names of the items of a list.
func (o Obj) Names() (names []string) {
	for _, it := range o.List("items") {
		if !published(it.Name()) {
			names = append(names, it.Name())
		}
	}
	return names
}

// Item returns the item of a list with a name, or nil.
func (o Obj) Item(name string) Obj {
	for _, it := range o.List("items") {
		if it.Name() == name {
			return it
		}
	}
	return nil
}

// Manager returns the managedFields entry of a manager for an operation
// ("Apply", "Update" or "" for any), or nil.
func (o Obj) Manager(name, operation string) Obj {
	for _, e := range o.List("metadata.managedFields") {
		if e.Str("manager") == name && (operation == "" || e.Str("operation") == operation) {
			return e
		}
	}
	return nil
}

// Owns reports whether a manager owns the field at a path of managed-field keys
// such as "f:data", "f:a".
func (o Obj) Owns(manager, operation string, keys ...string) bool {
	for _, e := range o.List("metadata.managedFields") {
		if e.Str("manager") != manager || operation != "" && e.Str("operation") != operation {
			continue
		}
		v, ok := any(e["fieldsV1"]), true
		for _, k := range keys {
			m, isMap := v.(map[string]any)
			if v, ok = m[k]; !isMap || !ok {
				ok = false
				break
			}
		}
		if ok && e["fieldsV1"] != nil {
			return true
		}
	}
	return false
}
