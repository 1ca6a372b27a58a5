package random

import (
	"encoding/json"
	"strconv"
	"strings"
)

// metadata are the values of fields that all kinds have.
var metadata = map[string][]any{
	"/metadata/labels":                     {object{"app": "a"}, object{"app": "b", "x": ""}, object{}, nil, object{"app": nil}, object{"-": "x"}, object{"app": 1}},
	"/metadata/labels/app":                 {"a", "b", nil, "", "no label"},
	"/metadata/annotations":                {object{"a/b": "1"}, object{"c": "é"}, object{}, nil, object{"a b": ""}},
	"/metadata/annotations/example.com~1x": {"1", "2", nil},
	"/metadata/finalizers":                 {[]any{"example.com/f"}, []any{"example.com/f", "example.com/g"}, []any{}, nil, []any{"f"}, []any{"example.com/f", "example.com/f"}, []any{"orphan"}},
	"/metadata/ownerReferences": {[]any{owner("1")}, []any{owner("2"), owner("1")}, []any{owner("1"), owner("1")}, nil, []any{},
		[]any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": ""}}, []any{with(owner("1"), "controller", true), with(owner("2"), "controller", true)}},
	"/metadata/generateName":               {"gen-", nil},
	"/metadata/namespace":                  {Namespace, "other", "", nil},
	"/metadata/name":                       {"a", "b", "", nil},
	"/metadata/resourceVersion":            {"<<version create-1>>", "1", "0", "", nil, "x"},
	"/metadata/uid":                        {"<<uid create-1>>", "other", "", nil},
	"/metadata/creationTimestamp":          {nil, "2021-01-01T00:00:00Z", "x"},
	"/metadata/deletionTimestamp":          {nil, "2021-01-01T00:00:00Z"},
	"/metadata/deletionGracePeriodSeconds": {nil, 5},
	"/metadata/generation":                 {1, 77, nil},
	"/metadata/selfLink":                   {"/x", nil},
	"/metadata/managedFields":              {[]any{object{}}, []any{}, nil, []any{object{"manager": "x", "operation": "Odd"}}, []any{object{"manager": "m1", "operation": "Apply", "apiVersion": "v1", "time": "2021-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": object{"f:metadata": object{"f:labels": object{"f:app": object{}}}}}}},
	"/metadata/unknown":                    {1},
}

// often are the fields that requests mostly set.
var often = []string{"/metadata/labels", "/metadata/labels/app", "/metadata/annotations", "/metadata/finalizers", "/metadata/ownerReferences"}

func owner(uid string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "name": "o" + uid, "uid": "00000000-0000-0000-0000-00000000000" + uid}
}

func with(o object, name string, value any) object { o[name] = value; return o }

// field returns a field and a value for it.
func (s *sequence) field() (pointer string, value any) {
	var values []any
	switch n := s.IntN(20); {
	case n < 1:
		pointer = key(s.dice, metadata)
		values = metadata[pointer]
	case n < 7:
		pointer = pick(s.dice, often...)
		values = metadata[pointer]
	default:
		pointer = key(s.dice, s.kind.Fields)
		values = s.kind.Fields[pointer]
	}
	// The first values are valid ones.
	if s.one(2) {
		values = values[:min(2, len(values))]
	}
	return pointer, clone(pick(s.dice, values...))
}

// name returns the name of an object, mostly of the first.
func (s *sequence) name() string { return pick(s.dice, "a", "a", "a", "a", "b") }

// whole returns the base with some fields changed.
func (s *sequence) whole(name string) object {
	o := clone(s.kind.Base).(object)
	put(o, "/metadata/name", name)
	if s.one(2) {
		put(o, "/metadata/labels", object{"app": "a"})
	}
	if len(s.kind.Versions) > 0 {
		o["apiVersion"] = pick(s.dice, s.kind.Versions...)
	}
	s.change(o, s.IntN(3))
	return o
}

// part returns an object with some fields, or all of the base too.
func (s *sequence) part(name string) object {
	if s.one(3) {
		return s.whole(name)
	}
	o := object{"apiVersion": s.kind.Base["apiVersion"], "kind": s.kind.Base["kind"], "metadata": object{"name": name}}
	s.change(o, 1+s.IntN(3))
	return o
}

// change sets some fields.
func (s *sequence) change(o object, fields int) {
	for range fields {
		pointer, value := s.field()
		put(o, pointer, value)
	}
}

// put sets the value at a JSON pointer, and creates the objects on the way.
func put(o object, pointer string, value any) {
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if i == len(names)-1 {
			o[name] = value
			return
		}
		inner, ok := o[name].(object)
		if !ok {
			inner = object{}
			o[name] = inner
		}
		o = inner
	}
}

// clone returns a deep copy of a JSON value.
func clone(value any) (out any) {
	_ = json.Unmarshal([]byte(encoded(value)), &out) // valid JSON
	return out
}

// text is a body that is changed as text: its JSON is not valid, or not all decoders read it the same way.
func (s *sequence) spoil(body string) string {
	at := 1 + s.IntN(len(body))
	switch s.IntN(9) {
	case 0:
		return body[:at]
	case 1:
		return body[:at] + pick(s.dice, "\xff", "\x00", " ", "é", "\u2028", ",", "}", "\\u0000", "\ufeff") + body[at:]
	case 2: // a key that occurs twice
		pointer, value := s.field()
		names := strings.Split(pointer, "/")
		return strings.Replace(body, "{", `{"`+names[1]+`":`+encoded(value)+`,`, 1)
	case 3:
		return body + pick(s.dice, "x", "{}", " ", "\n", "\x00", body)
	case 4:
		return strings.Replace(body, `:"`, `:`+pick(s.dice, "1", "1e400", "12345678901234567890123", "0.1", "-0", "true", "null", "[]", "{}", "01", "NaN", `"\ud800"`, `'a'`)+`,"x":"`, 1+s.IntN(2))
	case 5:
		depth := pick(s.dice, 50, 600, 12000)
		return strings.Replace(body, "{", `{"deep":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+",", 1)
	case 6:
		depth := pick(s.dice, 50, 600, 12000)
		return strings.Replace(body, "{", `{"deep":`+strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)+",", 1)
	case 7: // other letters in the name of a field
		return strings.Replace(body, `"metadata"`, pick(s.dice, `"Metadata"`, `"METADATA"`, `"metadata "`, `"meta\u0064ata"`), 1)
	default:
		return strings.Replace(body, `"kind":"`, `"kind":"`+strconv.Itoa(s.IntN(3)), 1)
	}
}
