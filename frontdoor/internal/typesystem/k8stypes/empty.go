package k8stypes

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Empty returns an object of a kind in the names of a vocabulary, with apiVersion, kind and
// all members that every object of the kind has: structs that are not pointers, and members
// without omitempty as null or zero, as a release writes them. It returns nil for a kind without a published Go type.
func Empty(v vocabulary.Vocabulary, r release.Release, kind schema.GroupVersionKind) map[string]any {
	original := kind
	original.Group = vocabulary.K8s().Group(v.ShortGroup(kind.Group))
	object, err := Types().New(original)
	if err != nil {
		return nil
	}
	empty := members(reflect.TypeOf(object).Elem(), OmitsZero(r))
	empty["apiVersion"], empty["kind"] = kind.GroupVersion().String(), kind.Kind
	return empty
}

// members returns the members that are always present in a struct, without those that are
// omitted when they are zero if omitZero says so.
func members(t reflect.Type, omitZero bool) map[string]any {
	present := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", omitZero && strings.Contains(options, "omitzero"):
		case f.Anonymous && name == "":
			for name, value := range members(f.Type, omitZero) {
				present[name] = value
			}
		case f.Type.Kind() == reflect.Struct:
			present[name] = structure(f.Type, omitZero)
		case !strings.Contains(options, "omitempty"):
			present[name] = zero(f.Type)
		}
	}
	return present
}

// structure returns the members that are always present in a nested struct. It returns the
// zero value of structs whose JSON is not an object, like times.
func structure(t reflect.Type, omitZero bool) any {
	if opaque(t) {
		return zero(t)
	}
	return members(t, omitZero)
}

// opaque reports whether a type has its own JSON encoding.
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
