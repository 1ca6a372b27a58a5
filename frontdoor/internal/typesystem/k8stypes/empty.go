package k8stypes

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Empty returns the object of a kind, in the names of a vocabulary, that says nothing
// but its kind, with all that is part of it nevertheless: structs that are no pointers,
// and, as null or zero, members that are not left out when they are empty. Nil when no
// type of that kind is published.
func Empty(v vocabulary.Vocabulary, kind schema.GroupVersionKind) map[string]any {
	original := kind
	original.Group = vocabulary.K8s().Group(v.ShortGroup(kind.Group))
	object, err := Types().New(original)
	if err != nil {
		return nil
	}
	empty := members(reflect.TypeOf(object).Elem())
	empty["apiVersion"], empty["kind"] = kind.GroupVersion().String(), kind.Kind
	return empty
}

// members returns what there always is of a struct.
func members(t reflect.Type) map[string]any {
	always := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			for name, value := range members(f.Type) {
				always[name] = value
			}
		case f.Type.Kind() == reflect.Struct:
			always[name] = structure(f.Type)
		case !strings.Contains(options, "omitempty"):
			always[name] = zero(f.Type)
		}
	}
	return always
}

// structure returns what there always is of a struct that is a member. Those that JSON
// does not show as objects, like times, are null.
func structure(t reflect.Type) any {
	if opaque(t) {
		return zero(t)
	}
	return members(t)
}

// opaque reports whether a type decides itself what its JSON is.
func opaque(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

// zero returns the JSON of a type's zero value.
func zero(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Int32, reflect.Int64:
		return int64(0)
	}
	var value any
	if raw, err := json.Marshal(reflect.Zero(t).Interface()); err == nil {
		_ = json.Unmarshal(raw, &value)
	}
	if number, ok := value.(float64); ok {
		return int64(number)
	}
	return value
}
