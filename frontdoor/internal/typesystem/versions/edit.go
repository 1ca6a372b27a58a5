package versions

import (
	"maps"

	"github.com/portico-platform/portico/services/tree"
)

// changed replaces a member that is an object by a copy that change has worked on.
func changed(m map[string]any, name string, change func(map[string]any)) {
	if member, ok := m[name].(map[string]any); ok {
		member = maps.Clone(member)
		change(member)
		m[name] = member
	}
}

// eachChanged replaces a member that is a list of objects by one of copies that
// change has worked on.
func eachChanged(m map[string]any, name string, change func(map[string]any)) {
	if list, ok := m[name].([]any); ok {
		m[name] = copies(list, change)
	}
}

// copies returns a list of copies of the objects in a list, each worked on.
func copies(list []any, change func(map[string]any)) []any {
	copied := make([]any, len(list))
	for i, item := range list {
		if object, ok := item.(map[string]any); ok {
			object = maps.Clone(object)
			change(object)
			item = object
		}
		copied[i] = item
	}
	return copied
}

// rename gives a member another name.
func rename(m map[string]any, from, to string) {
	if value, ok := take(m, from); ok {
		m[to] = value
	}
}

// take removes a member and returns it.
func take(m map[string]any, name string) (any, bool) {
	value, ok := m[name]
	delete(m, name)
	return value, ok
}

// takeAnnotation removes an annotation and returns it.
func takeAnnotation(object map[string]any, name string) (value string, ok bool) {
	if value, ok = tree.Child(tree.Child(object, "metadata"), "annotations")[name].(string); !ok {
		return "", false
	}
	changed(object, "metadata", func(metadata map[string]any) {
		changed(metadata, "annotations", func(annotations map[string]any) { delete(annotations, name) })
		if len(tree.Child(metadata, "annotations")) == 0 {
			delete(metadata, "annotations")
		}
	})
	return value, true
}

// annotate sets an annotation.
func annotate(object map[string]any, name, value string) {
	metadata := maps.Clone(tree.Child(object, "metadata"))
	if metadata == nil {
		metadata = map[string]any{}
	}
	annotations := maps.Clone(tree.Child(metadata, "annotations"))
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[name] = value
	metadata["annotations"], object["metadata"] = annotations, metadata
}
