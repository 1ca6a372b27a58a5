package tree

// Child returns the object at a path, nil if there is none. Object creates a missing one.
func Child(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// Value returns the value at a path of at least one name, nil if there is none.
func Value(object map[string]any, path ...string) any {
	last := len(path) - 1
	return Child(object, path[:last]...)[path[last]]
}

// Text returns the string at a path, "" if there is none.
func Text(object map[string]any, path ...string) string {
	s, _ := Value(object, path...).(string)
	return s
}

// Number returns the integer at a path, 0 if there is none.
func Number(object map[string]any, path ...string) int64 {
	n, _ := Value(object, path...).(int64)
	return n
}

// List returns the list at a path, nil if there is none.
func List(object map[string]any, path ...string) []any {
	list, _ := Value(object, path...).([]any)
	return list
}

// Texts returns the strings in the list at a path. Other items are skipped.
func Texts(object map[string]any, path ...string) (texts []string) {
	for _, item := range List(object, path...) {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// Objects returns the objects in the list at a path. Other items are skipped.
func Objects(object map[string]any, path ...string) (objects []map[string]any) {
	for _, item := range List(object, path...) {
		if o, ok := item.(map[string]any); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

// ListOf converts strings to a list.
func ListOf(texts []string) []any {
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list
}
