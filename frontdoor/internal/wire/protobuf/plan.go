package protobuf

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// plan describes the conversion of JSON objects of one Go type into messages.
type plan struct {
	fields []field
	byName names // of fields
	parts  []part
}

// field is a member of a JSON object.
type field struct {
	value
	name  string
	tag   string
	shape shape
	// keyTag and valueTag are the tags within the entries of a map.
	keyTag, valueTag string
}

type shape uint8

const (
	single shape = iota
	list
	dictionary // by strings
)

// part is one field of a message; the parts of a plan are in the order of the encoding.
type part struct {
	number protowire.Number
	field  int    // index of the field with the value
	absent string // encoding of an absent field; "" for none
	// inlined are the parts of an embedded message, whose JSON members are inlined into the
	// parent. It is written under tag even if all of them are absent.
	inlined []part
	tag     string
}

// value describes the encoding of one value, in a field, a list or a map.
type value struct {
	kind   kind
	plan   *plan        // of kindMessage
	goType reflect.Type // of the others
	// zero is the encoding after the tag where a value is required and JSON has null or
	// none.
	zero string
}

type kind uint8

const (
	kindString kind = iota
	kindBool
	kindInt32
	kindInt64
	kindBytes
	kindStrings // a list type with its own message
	kindMessage
	kindRaw
	kindTime
	kindMicroTime
	kindQuantity
	kindIntOrString
)

// leaves are the messages whose JSON is not an object of their fields.
var leaves = map[reflect.Type]kind{
	reflect.TypeFor[runtime.RawExtension](): kindRaw,
	reflect.TypeFor[metav1.FieldsV1]():      kindRaw,
	reflect.TypeFor[metav1.Time]():          kindTime,
	reflect.TypeFor[metav1.MicroTime]():     kindMicroTime,
	reflect.TypeFor[resource.Quantity]():    kindQuantity,
	reflect.TypeFor[intstr.IntOrString]():   kindIntOrString,
}

// marshaler is implemented by generated messages.
type marshaler interface{ Marshal() ([]byte, error) }

// compiler compiles plans and caches them by type, so that recursive types terminate.
type compiler map[reflect.Type]*plan

// plan compiles a struct type. It returns an error for a type that plans do not support.
func (c compiler) plan(t reflect.Type) (*plan, error) {
	if p, ok := c[t]; ok {
		return p, nil
	}
	p := &plan{}
	c[t] = p
	var err error
	if p.parts, err = c.parts(p, t); err == nil {
		p.byName, err = nameFields(p.fields)
	}
	if err != nil {
		delete(c, t)
	}
	return p, err
}

// parts compiles the fields of a type, or of an inlined one, into the plan.
func (c compiler) parts(p *plan, t reflect.Type) ([]part, error) {
	var parts []part
	for i := range t.NumField() {
		f := t.Field(i)
		tag, written := f.Tag.Lookup("protobuf")
		if !written && !f.Anonymous {
			continue
		}
		made, err := c.part(p, f, tag)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		if written { // kind and apiVersion are read and skipped: the envelope has them
			parts = append(parts, made)
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	return parts, nil
}

func (c compiler) part(p *plan, f reflect.StructField, tag string) (part, error) {
	number, _ := strconv.Atoi(strings.SplitN(tag+",,", ",", 3)[1])
	made := part{number: protowire.Number(number)}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	var err error
	switch {
	case name == "-" || strings.Contains(options, "string"):
		return made, fmt.Errorf("JSON has it as %q", f.Tag.Get("json"))
	case f.Anonymous && name == "":
		made.tag = tagOf(made.number, protowire.BytesType)
		made.inlined, err = c.parts(p, f.Type)
		return made, err
	case number == 0:
		return made, fmt.Errorf("no field number in %q", tag)
	case name == "":
		name = f.Name
	}
	compiled, err := c.field(f.Type, made.number)
	compiled.name = name
	switch f.Type.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
	default:
		made.absent = compiled.tag + compiled.zero
	}
	made.field = len(p.fields)
	p.fields = append(p.fields, compiled)
	return made, err
}

func (c compiler) field(t reflect.Type, number protowire.Number) (field, error) {
	f := field{shape: single}
	own := t.Implements(reflect.TypeFor[marshaler]())
	switch {
	case t.Kind() == reflect.Pointer:
		t = t.Elem()
	case t.Kind() == reflect.Slice && !own && t.Elem().Kind() != reflect.Uint8:
		f.shape, t = list, t.Elem()
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		f.shape, t = dictionary, t.Elem()
	}
	var err error
	f.value, err = c.value(t)
	f.tag = tagOf(number, f.wireType())
	if f.shape == dictionary {
		f.tag = tagOf(number, protowire.BytesType)
		f.keyTag, f.valueTag = tagOf(entryKey, protowire.BytesType), tagOf(entryValue, f.wireType())
	}
	if f.shape == list && f.kind == kindBytes {
		err = fmt.Errorf("a list of bytes")
	}
	return f, err
}

func (c compiler) value(t reflect.Type) (value, error) {
	v := value{goType: t, zero: "\x00"}
	k, isLeaf := leaves[t]
	switch {
	case isLeaf:
		v.kind = k
		return v, v.setZero()
	case hasOwnJSON(reflect.PointerTo(t)):
		return v, fmt.Errorf("unknown JSON of %s", t)
	}
	switch t.Kind() {
	case reflect.String:
		v.kind = kindString
	case reflect.Bool:
		v.kind = kindBool
	case reflect.Int32:
		v.kind = kindInt32
	case reflect.Int64:
		v.kind = kindInt64
	case reflect.Slice:
		switch own := t.Implements(reflect.TypeFor[marshaler]()); {
		case own && t.Elem().Kind() == reflect.String:
			v.kind = kindStrings
		case !own && t.Elem().Kind() == reflect.Uint8:
			v.kind, v.zero = kindBytes, ""
		default:
			return v, fmt.Errorf("a list %s within another", t)
		}
	case reflect.Struct:
		var err error
		v.kind = kindMessage
		if v.plan, err = c.plan(t); err != nil {
			return v, err
		}
		return v, v.setZero()
	default:
		return v, fmt.Errorf("a %s", t.Kind())
	}
	return v, nil
}

func hasOwnJSON(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// setZero sets zero to the generated message of the zero value.
func (v *value) setZero() error {
	m, ok := reflect.New(v.goType).Interface().(marshaler)
	if !ok {
		return fmt.Errorf("%s is no message", v.goType)
	}
	zero, err := m.Marshal()
	v.zero = string(protowire.AppendBytes(nil, zero))
	return err
}

func (v *value) wireType() protowire.Type {
	switch v.kind {
	case kindBool, kindInt32, kindInt64:
		return protowire.VarintType
	}
	return protowire.BytesType
}

func tagOf(n protowire.Number, t protowire.Type) string {
	return string(protowire.AppendTag(nil, n, t))
}

// names maps names to fields: a sparse hash table with linear probing.
type names struct {
	table []named
	mask  uint32
}

type named struct {
	name  string // "" for an empty slot
	field int
}

func nameFields(fields []field) (names, error) {
	size := 4
	for size < 4*len(fields) {
		size *= 2
	}
	n := names{make([]named, size), uint32(size - 1)}
	for i, f := range fields {
		at := n.hash([]byte(f.name))
		for ; n.table[at].name != ""; at = (at + 1) & n.mask {
			if n.table[at].name == f.name {
				return n, fmt.Errorf("two fields are %s in JSON", f.name)
			}
		}
		n.table[at] = named{f.name, i}
	}
	return n, nil
}

// hash uses only a few bytes: the names of one type differ in them nearly always.
func (n *names) hash(name []byte) uint32 {
	if len(name) == 0 {
		return 0
	}
	last := len(name) - 1
	h := uint32(name[0]) | uint32(name[last])<<8 | uint32(name[last/2])<<16 | uint32(last)<<24
	return h * 2654435761 >> 16 & n.mask
}

// find returns the index of the field with a name, or -1.
func (n *names) find(name []byte) int {
	for at := n.hash(name); n.table[at].name != ""; at = (at + 1) & n.mask {
		if n.table[at].name == string(name) {
			return n.table[at].field
		}
	}
	return -1
}
