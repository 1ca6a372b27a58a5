package k8stypes

import (
	"path"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services/release"
)

// Fields is a set of JSON names of fields.
type Fields map[string]bool

// Shape holds properties of the fields of a published Go type.
type Shape struct {
	// OmitEmpty are the strings, bytes, numbers and booleans that are omitted when they are zero.
	// Typed clients cannot distinguish zero from absent there, and write neither.
	OmitEmpty Fields
	// Always are the numbers and booleans that are written when they are zero.
	Always Fields
	// Structs are the objects that are always present, because they are structs and not
	// pointers.
	Structs Fields
	// Null are the lists, maps, times and single values that are null when they are absent.
	Null Fields
	// OmitZero are those of Null that releases from OmitsZero on omit instead.
	OmitZero Fields
	// Stated are the strings, and the integers or strings, whose empty value differs from
	// an absent one.
	Stated Fields
}

// zeroOmitted is the first release that knows omitzero.
var zeroOmitted, _ = release.Of("1.34")

// OmitsZero reports whether a release omits times that are not set and are marked so, where
// earlier ones write null.
func OmitsZero(r release.Release) bool { return !r.Before(zeroOmitted) }

// Shapes returns the shapes of all types by the last three parts of their definition names
// (core.v1.PodSpec).
var Shapes = sync.OnceValue(func() map[string]Shape {
	found := map[string]Shape{}
	for _, object := range Types().AllKnownTypes() {
		collect(object, found)
	}
	for _, kind := range []string{"PriorityClass", "PriorityClassList"} { // one type for two versions
		found["scheduling.v1alpha1."+kind] = found["scheduling.v1beta1."+kind]
	}
	return found
})

// collect adds the shapes of a type and of all types below it.
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
	found[name] = Shape{Fields{}, Fields{}, Fields{}, Fields{}, Fields{}, Fields{}}
	note(t, found[name])
	for i := range t.NumField() {
		collect(t.Field(i).Type, found)
	}
}

// note adds the fields of a type and of its inlined types.
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
				shape.Structs[name] = true
			case isTime(f.Type): // omitempty does not omit a struct
				shape.Null[name] = true
				shape.OmitZero[name] = strings.Contains(options, "omitzero")
			}
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
			if name != "" && strings.Contains(options, "omitempty") {
				shape.OmitEmpty[name] = true
			}
			shape.Always[name] = always
		case reflect.Slice, reflect.Map:
			if always {
				shape.Null[name] = true
			} else if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Uint8 {
				shape.OmitEmpty[name] = true
			}
		case reflect.Pointer:
			kind := f.Type.Elem().Kind()
			if always && kind != reflect.Struct {
				shape.Null[name] = true
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

// definition returns the last parts of a type's definition name.
func definition(t reflect.Type) string {
	return path.Base(path.Dir(t.PkgPath())) + "." + path.Base(t.PkgPath()) + "." + t.Name()
}
