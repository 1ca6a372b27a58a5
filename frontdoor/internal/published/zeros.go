package published

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"sync"
)

// Fields are names of fields in JSON.
type Fields map[string]bool

// Fleeting returns the texts, numbers and truth values that an object leaves out when
// they are zero, by the last three parts of the definition that has them
// (core.v1.PodSpec). For typed clients zero and none are the same there, and they
// write neither.
var Fleeting = sync.OnceValue(func() map[string]Fields {
	found := map[string]Fields{}
	for _, object := range Types().AllKnownTypes() {
		collect(object, found)
	}
	return found
})

// collect notes the fleeting fields of a type and of all that it is made of.
func collect(t reflect.Type, found map[string]Fields) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t.Elem(), found)
		return
	case reflect.Struct:
	default:
		return
	}
	name := definition(t)
	if _, known := found[name]; known || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return
	}
	found[name] = Fields{}
	note(t, found[name])
	for i := range t.NumField() {
		collect(t.Field(i).Type, found)
	}
}

// note adds the fleeting fields of a type, and those of the types in line with it.
func note(t reflect.Type, fields Fields) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch f.Type.Kind() {
		case reflect.Struct:
			if f.Anonymous && name == "" {
				note(f.Type, fields)
			}
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
			if name != "" && strings.Contains(options, "omitempty") {
				fields[name] = true
			}
		}
	}
}

// definition returns the last parts of the name that the document has for a type.
func definition(t reflect.Type) string {
	return path.Base(path.Dir(t.PkgPath())) + "." + path.Base(t.PkgPath()) + "." + t.Name()
}
