package fieldmanager

import (
	"math"

	"github.com/portico-platform/portico/services/tree"
)

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

// withoutOwners returns the object without metadata.managedFields. It does not modify the
// object; the result shares everything else with it.
func withoutOwners(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if _, has := metadata["managedFields"]; !ok || !has {
		return object
	}
	return replaced(object, "metadata", without(metadata, "managedFields"))
}

// sameContent reports whether two objects are equal apart from managedFields and
// resourceVersion.
func sameContent(a, b map[string]any) bool {
	metadataOf := func(object map[string]any) map[string]any {
		metadata, _ := object["metadata"].(map[string]any)
		return without(metadata, "managedFields", "resourceVersion")
	}
	return tree.Equal(metadataOf(a), metadataOf(b)) && tree.Equal(without(a, "metadata"), without(b, "metadata"))
}

// copyOf returns a deep copy of a value.
func copyOf[T any](value T) T {
	copied, _ := tree.Copy(value).(T)
	return copied
}

// settleNumbers replaces whole floats by the integers as which they are stored, in place, so that
// applying 1.0 again changes nothing. It returns the value.
func settleNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if settled := settleNumbers(below); isFloat(below) {
				v[name] = settled
			}
		}
	case []any:
		for i, below := range v {
			v[i] = settleNumbers(below)
		}
	case float64:
		if v == math.Trunc(v) && v >= math.MinInt64 && v < math.MaxInt64 {
			return int64(v)
		}
	}
	return value
}

func isFloat(value any) bool {
	_, is := value.(float64)
	return is
}
