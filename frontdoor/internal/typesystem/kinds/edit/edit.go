// Package edit changes objects whose parts are shared: each function replaces what it
// changes below the first level by a copy. Conversions between versions and nothing else
// use it.
package edit

import (
	"maps"

	"github.com/portico-platform/portico/services/tree"
)

// Member replaces a member that is an object by a shallow copy, modified by change.
func Member(m map[string]any, name string, change func(map[string]any)) {
	if member, ok := m[name].(map[string]any); ok {
		member = maps.Clone(member)
		change(member)
		m[name] = member
	}
}

// Items replaces a member that is a list of objects by shallow copies, modified by change.
func Items(m map[string]any, name string, change func(map[string]any)) {
	if list, ok := m[name].([]any); ok {
		m[name] = Copies(list, change)
	}
}

// Copies returns a list of shallow copies of objects, each modified by change.
func Copies(list []any, change func(map[string]any)) []any {
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

// Rename renames a member.
func Rename(m map[string]any, from, to string) {
	if value, ok := Take(m, from); ok {
		m[to] = value
	}
}

// Take removes a member and returns it.
func Take(m map[string]any, name string) (any, bool) {
	value, ok := m[name]
	delete(m, name)
	return value, ok
}

// TakeAnnotation removes an annotation and returns it.
func TakeAnnotation(object map[string]any, name string) (value string, ok bool) {
	if value, ok = tree.Child(tree.Child(object, "metadata"), "annotations")[name].(string); !ok {
		return "", false
	}
	Member(object, "metadata", func(metadata map[string]any) {
		Member(metadata, "annotations", func(annotations map[string]any) { delete(annotations, name) })
		if len(tree.Child(metadata, "annotations")) == 0 {
			delete(metadata, "annotations")
		}
	})
	return value, true
}

// Annotate sets an annotation.
func Annotate(object map[string]any, name, value string) {
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
