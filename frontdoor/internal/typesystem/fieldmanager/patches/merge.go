package patches

import "k8s.io/apimachinery/pkg/runtime"

// Merge applies a merge patch (RFC 7386): null removes a member, objects are merged, other
// values replace.
func Merge(current, patch map[string]any) map[string]any {
	return mergeObject(runtime.DeepCopyJSON(current), patch)
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
		default:
			object[name] = value
		}
	}
	return object
}
