package k8stypes

import (
	"path"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	// Shown are the lists, dictionaries, times and single values that are null when
	// nobody says anything of them.
	Shown Fields
	// Stated are the texts, and what may be one, whose empty value is not the same as
	// none.
	Stated Fields
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
	found[name] = Shape{Fields{}, Fields{}, Fields{}, Fields{}}
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
		always := name != "" && name != "-" && !strings.Contains(options, "omitempty")
		switch f.Type.Kind() {
		case reflect.Struct:
			switch {
			case f.Anonymous && name == "":
				note(f.Type, shape)
			case !opaque(f.Type):
				shape.Standing[name] = true
			case isTime(f.Type) && !strings.Contains(options, "omitzero"): // omitempty does not leave out a struct
				shape.Shown[name] = true
			}
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
			if name != "" && strings.Contains(options, "omitempty") {
				shape.Fleeting[name] = true
			}
		case reflect.Slice, reflect.Map:
			if always {
				shape.Shown[name] = true
			}
		case reflect.Pointer:
			kind := f.Type.Elem().Kind()
			if always && kind != reflect.Struct {
				shape.Shown[name] = true
			}
			if name != "" && (kind == reflect.String || f.Type.Elem() == reflect.TypeFor[intstr.IntOrString]()) {
				shape.Stated[name] = true
			}
		}
	}
}

// isTime reports whether a type is a time.
func isTime(t reflect.Type) bool {
	return t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.MicroTime]()
}

// definition returns the last parts of the name that the document has for a type.
func definition(t reflect.Type) string {
	return path.Base(path.Dir(t.PkgPath())) + "." + path.Base(t.PkgPath()) + "." + t.Name()
}
