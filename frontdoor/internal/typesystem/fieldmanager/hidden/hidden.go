// Package hidden takes fields that the release does not have out of objects, and puts them
// back: a later release has stored them, and the library that merges refuses them.
package hidden

import (
	"maps"
	"reflect"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/tree"
)

// Field is a field that was taken out of an object.
type Field struct {
	path  []place
	name  string
	value any
}

// place is one step of a path: a member of an object, or an item of a list, which is known
// by its name or its content.
type place struct {
	name  string
	index int
	item  any
}

// Take returns the object without the fields that its schema lacks, and these. It does not
// modify the object. resolve returns the schema that another one refers to.
func Take(object map[string]any, s *spec.Schema, resolve func(spec.Schema) *spec.Schema) (map[string]any, []Field) {
	w := walk{resolve: resolve}
	known, _ := w.visible(object, s, nil).(map[string]any)
	return known, w.found
}

type walk struct {
	resolve func(spec.Schema) *spec.Schema
	found   []Field
}

// visible returns a value without hidden fields. It copies what it changes.
func (w *walk) visible(value any, s *spec.Schema, at []place) any {
	if s == nil {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		return w.visibleMembers(value, s, at)
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return value
		}
		below := w.resolve(*s.Items.Schema)
		copied := make([]any, len(value))
		for i, item := range value {
			before := len(w.found)
			copied[i] = w.visible(item, below, append(at[:len(at):len(at)], place{index: i}))
			for _, h := range w.found[before:] {
				h.path[len(at)].item = copied[i]
			}
		}
		return copied
	}
	return value
}

func (w *walk) visibleMembers(object map[string]any, s *spec.Schema, at []place) map[string]any {
	values := s.AdditionalProperties
	if len(s.Properties) == 0 && (values == nil || values.Schema == nil) {
		return object // any fields
	}
	copied := maps.Clone(object)
	for name, value := range object {
		field, known := s.Properties[name]
		switch {
		case known:
			copied[name] = w.visible(value, w.resolve(field), append(at[:len(at):len(at)], place{name: name}))
		case len(s.Properties) == 0:
			copied[name] = w.visible(value, w.resolve(*values.Schema), append(at[:len(at):len(at)], place{name: name}))
		default:
			delete(copied, name)
			w.found = append(w.found, Field{append([]place(nil), at...), name, value})
		}
	}
	return copied
}

// PutBack returns the field to an object that has the same place. Items of lists that are
// no longer there take their hidden fields with them.
func (f Field) PutBack(object map[string]any) {
	var value any = object
	for _, s := range f.path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[s.name]
		case []any:
			value = s.find(parent)
		}
	}
	if parent, ok := value.(map[string]any); ok {
		if _, given := parent[f.name]; !given {
			parent[f.name] = tree.Copy(f.value)
		}
	}
}

// find returns the item with the same name, or else the same content at the same place.
func (s place) find(list []any) any {
	was, _ := s.item.(map[string]any)
	for i, item := range list {
		is, ok := item.(map[string]any)
		if ok && was["name"] != nil && was["name"] == is["name"] || i == s.index && reflect.DeepEqual(item, s.item) {
			return item
		}
	}
	return nil
}
