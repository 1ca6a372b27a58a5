package k8stypes

import (
	"path"
	"reflect"
	"strings"
	"sync"
)

// Fields are names of fields in JSON.
type Fields map[string]bool

// Shape is what a published type says of its fields.
type Shape struct {
	// Fleeting are the texts, numbers and truth values that an object leaves out when
	// they are zero. For typed clients zero and none are the same there, and they write
	// neither.
	Fleeting Fields
	// Standing are the objects that there are even when nobody says anything of them.
	Standing Fields
}

// Shapes returns the shapes of all types, by the last three parts of their definition
// (core.v1.PodSpec).
var Shapes = sync.OnceValue(func() map[string]Shape {
	found := map[string]Shape{}
	for _, object := range Types().AllKnownTypes() {
		collect(object, found)
	}
	return found
})

// collect notes the shapes of a type and of all that it is made of.
func collect(t reflect.Type, found map[string]Shape) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t.Elem(), found)
		return
	case reflect.Struct:
	default:
		return
	}
	name := definition(t)
	if _, known := found[name]; known || opaque(t) {
		return
	}
	found[name] = Shape{Fields{}, Fields{}}
	note(t, found[name])
	for i := range t.NumField() {
		collect(t.Field(i).Type, found)
	}
}

// note adds the fields of a type, and those of the types in line with it.
func note(t reflect.Type, shape Shape) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch f.Type.Kind() {
		case reflect.Struct:
			switch {
			case f.Anonymous && name == "":
				note(f.Type, shape)
			case !opaque(f.Type):
				shape.Standing[name] = true
			}
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
			if name != "" && strings.Contains(options, "omitempty") {
				shape.Fleeting[name] = true
			}
		}
	}
}

// definition returns the last parts of the name that the document has for a type.
func definition(t reflect.Type) string {
	return path.Base(path.Dir(t.PkgPath())) + "." + path.Base(t.PkgPath()) + "." + t.Name()
}
