package fieldmanager

import "github.com/portico-platform/portico/services/tree"

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
