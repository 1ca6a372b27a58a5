// Package recorded converts between the sets of the field-set library and fieldsV1, the
// form in which managedFields record them. It serves "Managed-fields entry" of the
// specification.
package recorded

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Decode adds the fields of fieldsV1 to a set. Unknown kinds of path elements are skipped,
// as the format requires.
func Decode(set *fieldpath.Set, fields map[string]any) error {
	elements, err := elementsOf(fields)
	if err != nil {
		return err
	}
	for _, e := range elements {
		element, children := e.PathElement, e.children
		_, self := children["."]
		if self || len(children) == 0 {
			set.Members.Insert(element)
		}
		if len(children) > 1 || len(children) == 1 && !self {
			if err := Decode(set.Children.Descend(element), children); err != nil {
				return err
			}
		}
	}
	return nil
}

// element is one path element of fieldsV1, with the fields below it.
type element struct {
	fieldpath.PathElement
	children map[string]any
}

// elementsOf returns the elements of one level in the order of the library's sets, which
// are sorted slices: inserting an element anywhere but at the end moves the others.
func elementsOf(fields map[string]any) ([]element, error) {
	elements := make([]element, 0, len(fields))
	for name, below := range fields {
		if name == "." {
			continue // handled by the caller
		}
		path, err := fieldpath.DeserializePathElement(name)
		if errors.Is(err, fieldpath.ErrUnknownPathElementType) {
			continue
		}
		if err != nil {
			return nil, err
		}
		children, ok := below.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s must be an object", name)
		}
		elements = append(elements, element{path, children})
	}
	slices.SortFunc(elements, func(a, b element) int { return a.Compare(b.PathElement) })
	return elements, nil
}

// Encode is the inverse of Decode.
func Encode(set *fieldpath.Set) (map[string]any, error) {
	fields := map[string]any{} // Children.Size() counts the whole subtree: no hint for one level
	for element := range set.Children.All() {
		name, err := fieldpath.SerializePathElement(element)
		if err != nil {
			return nil, err
		}
		child, _ := set.Children.Get(element)
		below, err := Encode(child)
		if err != nil {
			return nil, err
		}
		if len(below) > 0 {
			fields[name] = below
		}
	}
	for element := range set.Members.All() {
		name, err := fieldpath.SerializePathElement(element)
		if err != nil {
			return nil, err
		}
		if below, ok := fields[name].(map[string]any); ok {
			below["."] = map[string]any{}
		} else {
			fields[name] = map[string]any{}
		}
	}
	return fields, nil
}
