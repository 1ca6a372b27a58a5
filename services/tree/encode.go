package tree

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Encode returns an object's JSON with members sorted by name, byte for byte as
// encoding/json does, but several times faster for the types of decoded JSON. The error is
// a DepthError for an object that Decode would not accept; other errors name the type that
// cannot be encoded.
func Encode(object map[string]any) ([]byte, error) {
	return appendObject(make([]byte, 0, 2048), object, maxDecoded)
}

// EncodeNew is Encode for an object of a request, without managedFields. The error is a
// DepthError if it is nested more deeply than MaxDepth.
func EncodeNew(object map[string]any) ([]byte, error) {
	return appendObject(make([]byte, 0, 2048), object, MaxDepth)
}

// Append appends the JSON of a value to dst. Errors are those of Encode.
func Append(dst []byte, value any) ([]byte, error) { return appendValue(dst, value, maxDecoded) }

// appendValue appends a value that is nested at most left levels deep.
func appendValue(dst []byte, value any, left int) ([]byte, error) {
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
		return appendObject(dst, v, left)
	case []any:
		return appendList(dst, v, left)
	}
	other, err := json.Marshal(value) // structs that the service itself inserts
	if err != nil {
		return dst, fmt.Errorf("%T cannot be encoded: %w", value, err)
	}
	return append(dst, other...), nil
}

func appendObject(dst []byte, object map[string]any, left int) (_ []byte, err error) {
	if left == 0 {
		return dst, DepthError{MaxDepth}
	}
	var few [24]string // most objects need no allocation
	names := few[:0]
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		if dst, err = appendValue(dst, object[name], left-1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendList(dst []byte, list []any, left int) (_ []byte, err error) {
	if left == 0 {
		return dst, DepthError{MaxDepth}
	}
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(dst, item, left-1); err != nil {
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
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // a string always encodes
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
