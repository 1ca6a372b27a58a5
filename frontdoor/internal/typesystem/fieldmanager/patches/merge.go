package patches

import "github.com/portico-platform/portico/services/tree"

// Merge applies a merge patch (RFC 7386): null removes a member, objects are merged, other
// values replace. The result shares managedFields with the current object, which are a list
// and so never merged.
func Merge(current, patch map[string]any) map[string]any {
	return mergeObject(copyButOwners(current), patch)
}

// copyButOwners returns a deep copy that shares only metadata.managedFields.
func copyButOwners(object map[string]any) map[string]any {
	copied := make(map[string]any, len(object))
	for name, value := range object {
		if meta, ok := value.(map[string]any); ok && name == "metadata" {
			value = copyMetadata(meta)
		} else {
			value = tree.Copy(value)
		}
		copied[name] = value
	}
	return copied
}

func copyMetadata(meta map[string]any) map[string]any {
	copied := make(map[string]any, len(meta))
	for name, value := range meta {
		if list, ok := value.([]any); ok && name == "managedFields" {
			copied[name] = list
		} else {
			copied[name] = tree.Copy(value)
		}
	}
	return copied
}

// mergeObject merges a patch into an object, in place.
func mergeObject(object, patch map[string]any) map[string]any {
	if object == nil {
		object = make(map[string]any, len(patch))
	}
	for name, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			below, _ := object[name].(map[string]any)
			object[name] = mergeObject(below, v)
		case []any:
			object[name] = withoutNulls(v)
		default:
			object[name] = value
		}
	}
	return object
}

// withoutNulls returns a list of a patch without the null members of its objects, which mean
// absent there too, as in Kubernetes (RFC 7386 keeps them). Null items are kept.
func withoutNulls(list []any) []any {
	cleaned := make([]any, len(list))
	for i, item := range list {
		switch v := item.(type) {
		case map[string]any:
			item = mergeObject(nil, v)
		case []any:
			item = withoutNulls(v)
		}
		cleaned[i] = item
	}
	return cleaned
}
