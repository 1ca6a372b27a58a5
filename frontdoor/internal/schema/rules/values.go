package rules

import "reflect"

// Reading objects whose types have been checked: what is absent, or of another
// type, reads as the zero value.

func textOf(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func objectOf(m map[string]any, name string) map[string]any {
	o, _ := m[name].(map[string]any)
	return o
}

func listOf(m map[string]any, name string) []any {
	l, _ := m[name].([]any)
	return l
}

func numberOf(m map[string]any, name string) int64 {
	i, _ := Whole(m[name])
	return i
}

// objectsOf returns the items of a list of objects; an item that is none is nil.
func objectsOf(m map[string]any, name string) []map[string]any {
	items := listOf(m, name)
	objects := make([]map[string]any, len(items))
	for i, item := range items {
		objects[i], _ = item.(map[string]any)
	}
	return objects
}

// Empty tells whether a value counts as not given.
func Empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return false // an object that is there says something
	}
	return false
}

// Same compares two values; what is left out equals what is empty.
func Same(a, b any) bool {
	if Empty(a) && Empty(b) {
		return true
	}
	return reflect.DeepEqual(a, b)
}

// Whole returns a JSON number without a fraction.
func Whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		i := int64(v)
		return i, float64(i) == v
	}
	return 0, false
}

// Complete fills in what an object does not say, level by level.
func Complete(m, defaults map[string]any) {
	for name, value := range defaults {
		given, ok := m[name]
		if !ok || given == nil {
			m[name] = Copy(value)
			continue
		}
		below, isObject := value.(map[string]any)
		if into, ok := given.(map[string]any); ok && isObject {
			Complete(into, below)
		}
	}
}

// Copy returns a deep copy of a JSON value.
func Copy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = Copy(item)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Copy(item)
		}
		return list
	}
	return value
}
