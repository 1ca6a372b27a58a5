package engine

import (
	kjson "sigs.k8s.io/json"
)

// Copy returns a deep copy.
func Copy(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	return deepCopy(object).(map[string]any)
}

// deepCopy copies maps and lists; everything else is immutable.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[key] = deepCopy(value)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, value := range v {
			l[i] = deepCopy(value)
		}
		return l
	}
	return v
}

// Decode reads an object's JSON; integers become int64.
func Decode(raw []byte) (map[string]any, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, err
	}
	return object, nil
}
