package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Encode returns an object's JSON with members sorted by name, byte for byte as
// encoding/json does, but several times faster for the types of decoded JSON; an object that
// is nil is an empty one. The error is
// a DepthError for an object that Decode would not accept; other errors name the type that
// cannot be encoded.
func Encode(object map[string]any) ([]byte, error) { return encode(object, maxDecoded) }

// EncodeNew is Encode for an object of a request, without managedFields. The error is a
// DepthError if it is nested more deeply than MaxDepth.
func EncodeNew(object map[string]any) ([]byte, error) { return encode(object, MaxDepth) }

// encode encodes into a buffer that is used again, and returns a copy of the right size.
func encode(object map[string]any, left int) ([]byte, error) {
	p := pendings.Get().(*pending)
	defer p.free()
	var err error
	if p.text, err = p.appendObject(p.text[:0], object, left); err != nil {
		return nil, err
	}
	return bytes.Clone(p.text), nil
}

// Append appends the JSON of a value to dst. Errors are those of Encode.
func Append(dst []byte, value any) ([]byte, error) {
	p := pendings.Get().(*pending)
	defer p.free()
	return p.appendValue(dst, value, maxDecoded)
}

// appendValue appends a value that is nested at most left levels deep.
func (p *pending) appendValue(dst []byte, value any, left int) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		return appendFloat(dst, v)
	case map[string]any:
		if p.owners && len(v) > 0 {
			if text := shared.encoded(v); text != "" {
				return append(dst, text...), nil
			}
		}
		return p.appendObject(dst, v, left)
	case []any:
		return p.appendList(dst, v, left)
	}
	other, err := json.Marshal(value) // structs that the service itself inserts
	if err != nil {
		return dst, fmt.Errorf("%T cannot be encoded: %w", value, err)
	}
	return append(dst, other...), nil
}

func (p *pending) appendObject(dst []byte, object map[string]any, left int) (_ []byte, err error) {
	if left == 0 {
		return dst, DepthError{MaxDepth}
	}
	first := len(p.members)
	for name, value := range object {
		p.members = append(p.members, member{name, value})
	}
	members := p.members[first:]
	sortMembers(members)
	dst = append(dst, '{')
	for i := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, members[i].name), ':')
		outer := p.owners
		p.owners = outer || members[i].name == "fieldsV1"
		if dst, err = p.appendValue(dst, members[i].value, left-1); err != nil {
			return dst, err
		}
		p.owners = outer
	}
	p.members = p.members[:first]
	return append(dst, '}'), nil
}

// fewMembers is how many members an insertion sorts faster.
const fewMembers = 12

func sortMembers(members []member) {
	if len(members) > fewMembers {
		slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
		return
	}
	for i := 1; i < len(members); i++ {
		for j := i; j > 0 && members[j].name < members[j-1].name; j-- {
			members[j], members[j-1] = members[j-1], members[j]
		}
	}
}

func (p *pending) appendList(dst []byte, list []any, left int) (_ []byte, err error) {
	if left == 0 {
		return dst, DepthError{MaxDepth}
	}
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = p.appendValue(dst, item, left-1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// appendFloat appends a number as encoding/json does, or returns an error for NaN and
// infinities.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%v is not a number in JSON", f)
	}
	other, err := json.Marshal(f)
	return append(dst, other...), err
}

// appendString appends a quoted string. The library encodes those that need escapes.
func appendString(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, '"')
	written := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"', c == '\\': // in names of managed fields
			dst = append(append(append(dst, s[written:i]...), '\\'), c)
			written = i + 1
		case c < ' ', c == '<', c == '>', c == '&', c >= utf8.RuneSelf:
			quoted, _ := json.Marshal(s) // a string always encodes
			return append(dst[:start], quoted...)
		}
	}
	return append(append(dst, s[written:]...), '"')
}
