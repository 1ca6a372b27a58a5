package merge

import "reflect"

// ownersOf returns metadata.managedFields; nil when there is none.
func ownersOf(object map[string]any) []any {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return list
}

// setOwners sets metadata.managedFields; an empty list removes it.
func setOwners(object map[string]any, list []any) {
	metadata, ok := object["metadata"].(map[string]any)
	switch {
	case len(list) == 0:
		delete(metadata, "managedFields")
	case ok:
		metadata["managedFields"] = list
	default:
		object["metadata"] = map[string]any{"managedFields": list}
	}
}

// withoutOwners returns the object without metadata.managedFields; the object
// itself is not touched, the rest is shared with it.
func withoutOwners(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if _, has := metadata["managedFields"]; !ok || !has {
		return object
	}
	bare := make(map[string]any, len(metadata))
	for k, v := range metadata {
		if k != "managedFields" {
			bare[k] = v
		}
	}
	shallow := make(map[string]any, len(object))
	for k, v := range object {
		shallow[k] = v
	}
	shallow["metadata"] = bare
	return shallow
}

// sameContent tells whether two objects differ in nothing but their owners and
// versions.
func sameContent(a, b map[string]any) bool {
	metadataOf := func(object map[string]any) map[string]any {
		metadata, _ := object["metadata"].(map[string]any)
		return without(metadata, "managedFields", "resourceVersion")
	}
	return equal(metadataOf(a), metadataOf(b)) && equal(without(a, "metadata"), without(b, "metadata"))
}

// copyOf returns a deep copy of a value.
func copyOf[T any](value T) T {
	copied, _ := deepCopy(value).(T)
	return copied
}

func deepCopy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = deepCopy(item)
		}
		return m
	case []any:
		if v == nil {
			return v
		}
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = deepCopy(item)
		}
		return list
	}
	return value
}

// equal compares two values without reflection on the common path.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, item := range x {
			other, ok := y[key]
			if !ok || !equal(item, other) {
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
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case string:
		y, ok := b.(string)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}
