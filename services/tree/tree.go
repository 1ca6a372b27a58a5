// Package tree decodes, encodes, reads, copies and compares objects of any type, as trees
// of map[string]any, []any and scalars (string, int64, float64, bool, nil), and in a few
// places directly as JSON. Of the fields of objects it knows only the metadata.
package tree

import (
	"encoding/json"
	"reflect"

	kjson "sigs.k8s.io/json"
)

// Copy returns a deep copy; scalars are immutable.
func Copy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = Copy(item)
		}
		return m
	case []any:
		if v == nil {
			return v
		}
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Copy(item)
		}
		return list
	}
	return value
}

// Plain returns a deep copy in which all values are as Decode makes them. The value may
// contain anything that encodes as JSON.
func Plain(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string, int64:
		return v, nil
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			plain, err := Plain(item)
			if err != nil {
				return nil, err
			}
			m[key] = plain
		}
		return m, nil
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			plain, err := Plain(item)
			if err != nil {
				return nil, err
			}
			list[i] = plain
		}
		return list, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	return plain, kjson.UnmarshalCaseSensitivePreserveInts(raw, &plain)
}

// Equal reports whether two values are deeply equal, at a fraction of the cost of
// reflection.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		if reflect.ValueOf(x).UnsafePointer() == reflect.ValueOf(y).UnsafePointer() {
			return true // parts of managedFields are shared
		}
		for key, item := range x {
			other, ok := y[key]
			if !ok || !Equal(item, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !Equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case string:
		y, ok := b.(string)
		return ok && x == y
	case int64:
		y, ok := b.(int64)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case nil:
		return b == nil
	}
	return reflect.DeepEqual(a, b)
}

// Object returns the member of parent with this name as an object. If it is not an object,
// it is replaced by an empty one.
func Object(parent map[string]any, name string) map[string]any {
	child, ok := parent[name].(map[string]any)
	if !ok {
		child = map[string]any{}
		parent[name] = child
	}
	return child
}
