// Package rawjson reads JSON in place. A Value finds single values without decoding the
// rest: reading a few cells of a table row, or the metadata of an object, costs one scan
// and no allocation. A Cursor reads a whole object from start to end, for conversion into
// another encoding. Both require valid JSON, which stored objects are; on other input they
// find nothing, and never panic or loop. The package serves "Table representation" and
// "Protobuf envelope" of the specification.
package rawjson

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"strconv"
)

// Value is the JSON text of a value; empty for no value. All methods are safe for every
// Value and return zero values if the type differs.
type Value []byte

// Exists reports whether there is a value other than null.
func (v Value) Exists() bool { return len(v) > 0 && v[0] != 'n' }

// Get returns the value that a path of member names leads to.
func (v Value) Get(path ...string) Value {
	for _, name := range path {
		v = v.member(name)
	}
	return v
}

func (v Value) member(name string) Value {
	for key, value := range v.rawMembers() {
		if key.Is(name) {
			return value
		}
	}
	return nil
}

// Members yields the members of an object.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for key, value := range v.rawMembers() {
			if !yield(key.String(), value) {
				return
			}
		}
	}
}

func (v Value) rawMembers() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		c := v.Read()
		if !c.Open('{') {
			return
		}
		for c.More('}') {
			key, ok := c.Key()
			if !ok || !yield(key, c.Skip()) {
				return
			}
		}
	}
}

// Index is the members of an object, for repeated lookups.
type Index []member

type member struct{ key, value Value }

// Index returns the members of an object, and in the same scan fills the indexes that
// within returns for members that are objects. It overwrites index and these indexes.
func (v Value) Index(index Index, within func(key Value) *Index) Index {
	c := v.Read()
	return c.members(index[:0], within)
}

func (c *Cursor) members(index Index, within func(key Value) *Index) Index {
	if !c.Open('{') {
		c.Skip()
		return index
	}
	for c.More('}') {
		key, ok := c.Key()
		if !ok {
			break
		}
		c.Peek()
		start := c.at
		if place := within(key); place != nil {
			*place = c.members((*place)[:0], noIndex)
		} else {
			c.Skip()
		}
		index = append(index, member{key, c.text[start:c.at]})
	}
	return index
}

func noIndex(Value) *Index { return nil }

// Offset returns the offset in v of a value that was found in v: both slices have the same
// backing array, and reads never limit the capacity.
func (v Value) Offset(found Value) int { return cap(v) - cap(found) }

// Get returns the value that a path of member names leads to.
func (x Index) Get(name string, path ...string) Value {
	for i := range x {
		if x[i].key.Is(name) {
			return x[i].value.Get(path...)
		}
	}
	return nil
}

// Items yields the items of an array.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		c := v.Read()
		if !c.Open('[') {
			return
		}
		for c.More(']') {
			item := c.Skip()
			if len(item) == 0 || !yield(item) {
				return
			}
		}
	}
}

// Len counts the items of an array or the members of an object.
func (v Value) Len() int {
	n := 0
	for range v.Items() {
		n++
	}
	for range v.rawMembers() {
		n++
	}
	return n
}

// String returns the value of a string, and "" for anything else.
func (v Value) String() string {
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	text, _ := v.appendString(nil)
	return string(text)
}

// Text returns the value of a string, "" for null and no value, and the JSON of any other
// value.
func (v Value) Text() string {
	if !v.Exists() {
		return ""
	}
	if v[0] == '"' {
		return v.String()
	}
	return string(v)
}

// Int returns the value of an integer, else 0.
func (v Value) Int() int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// True reports whether the value is the literal true.
func (v Value) True() bool { return string(v) == "true" }

// Is reports whether the value is the string name.
func (v Value) Is(name string) bool {
	if len(v) == len(name)+2 && string(v[1:len(v)-1]) == name {
		return true
	}
	return bytes.IndexByte(v, '\\') >= 0 && v.String() == name
}

// skip returns the offset after the value that starts at i.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; i+8 <= len(b); i += 8 {
		word := binary.LittleEndian.Uint64(b[i:])
		stop := equal(word, '"') | equal(word, '\\')
		if stop == 0 {
			continue
		}
		if i += bits.TrailingZeros64(stop) / 8; b[i] == '"' {
			return i + 1
		}
		i -= 6 // continue after the escaped byte
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// Size returns the length of the value at the start of text.
func Size(text []byte) int { return skip(text, 0) }
