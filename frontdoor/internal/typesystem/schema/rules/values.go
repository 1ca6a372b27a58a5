package rules

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/quantity"
	"github.com/portico-platform/portico/services/tree"
)

// Readers of objects whose types have been checked: absent values, and values of another
// type, are read as the zero value.

// Text returns the string value of a field.
func Text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// Object returns the object at a path of fields.
func Object(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		m, _ = m[name].(map[string]any)
	}
	return m
}

// AsObject returns a value as an object; an empty one if it is none.
func AsObject(value any) map[string]any {
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// List returns the list value of a field.
func List(m map[string]any, name string) []any {
	l, _ := m[name].([]any)
	return l
}

// Number returns the integer value of a field.
func Number(m map[string]any, name string) int64 {
	i, _ := Whole(m[name])
	return i
}

// Objects returns the items of a field's list; items that are not objects are nil.
func Objects(m map[string]any, name string) []map[string]any {
	items := List(m, name)
	if len(items) == 0 {
		return nil
	}
	objects := make([]map[string]any, len(items))
	for i, item := range items {
		objects[i], _ = item.(map[string]any)
	}
	return objects
}

// Texts returns the strings in a field's list.
func Texts(m map[string]any, name string) []string {
	items := List(m, name)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// TextsOf returns the string in a field of each object.
func TextsOf(objects []map[string]any, name string) []string {
	texts := make([]string, len(objects))
	for i, object := range objects {
		texts[i] = Text(object, name)
	}
	return texts
}

// Quantity parses a quantity that Prepare has checked.
func Quantity(value any) resource.Quantity {
	s, _ := value.(string)
	q, err := quantity.Parse(s)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

// Empty reports whether a value counts as absent.
func Empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false // an empty object counts as present
}

// byKey are the fields whose keys clients choose: a key with an empty text is not an absent one.
// Fields of other types with the same names have no texts, or distinguish an empty text, too.
var byKey = map[string]bool{"annotations": true, "attachmentMetadata": true, "binaryData": true, "data": true, "deprecatedTopology": true, "labels": true,
	"matchLabels": true, "nodeSelector": true, "options": true, "parameters": true, "selector": true, "unverifiedUserAnnotations": true,
	"userAnnotations": true, "volumeAttributes": true}

// SameField reports whether a field of two objects is equal; absent equals empty at any depth,
// but for keys that clients choose.
func SameField(a, b map[string]any, name string) bool { return same(a[name], b[name], byKey[name]) }

// Same is SameField for values that are not maps of texts themselves.
func Same(a, b any) bool { return same(a, b, false) }

func same(a, b any, keyed bool) bool {
	if Empty(a) || Empty(b) {
		return Empty(a) && Empty(b)
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && within(x, y, keyed) && noneBeyond(y, x, keyed)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !Same(x[i], y[i]) {
				return false
			}
		}
		return true
	case string, bool, int64:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// within reports whether all members of x are the same in y.
func within(x, y map[string]any, keyed bool) bool {
	for name, value := range x {
		if keyed && value == "" && y[name] != "" || !SameField(x, y, name) {
			return false
		}
	}
	return true
}

// noneBeyond reports whether the members of y that x does not have are empty.
func noneBeyond(y, x map[string]any, keyed bool) bool {
	for name, value := range y {
		if _, ok := x[name]; !ok && (keyed && value == "" || !Empty(value)) {
			return false
		}
	}
	return true
}

// Without returns a shallow copy without some members.
func Without(m map[string]any, names ...string) map[string]any {
	left := make(map[string]any, len(m))
members:
	for name, value := range m {
		for _, out := range names {
			if name == out {
				continue members
			}
		}
		left[name] = value
	}
	return left
}

// Whole returns the value of a JSON number without a fraction.
func Whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		i := int64(v)
		return i, float64(i) == v
	}
	return 0, false
}

// Complete sets absent values to their defaults, recursively. "" counts as absent.
func Complete(m, defaults map[string]any) {
	for name, value := range defaults {
		given, ok := m[name]
		if !ok || given == nil || given == "" {
			m[name] = tree.Copy(value)
			continue
		}
		below, isObject := value.(map[string]any)
		if into, ok := given.(map[string]any); ok && isObject {
			Complete(into, below)
		}
	}
}

// ConditionsOf returns the conditions of a type; all if kind is "".
func ConditionsOf(m map[string]any, kind string) []map[string]any {
	var of []map[string]any
	for _, condition := range Objects(Object(m, "status"), "conditions") {
		if kind == "" || Text(condition, "type") == kind {
			of = append(of, condition)
		}
	}
	return of
}

// IdentityOf returns the key of an item of a list, with its value and path for errors.
func IdentityOf(item any, by []string, at *field.Path) (key string, value any, where *field.Path) {
	m, ok := item.(map[string]any)
	if !ok {
		return field.Display(item), item, at
	}
	if len(by) == 1 {
		value = m[by[0]]
		if key, ok = value.(string); !ok {
			key = field.Display(value)
		}
		return key, value, &field.Path{Parent: at, Name: by[0]}
	}
	some := map[string]any{}
	for _, name := range by {
		some[name] = m[name]
	}
	return field.Display(some), some, at
}
