package tree

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Encode returns an object's JSON, members sorted by name, as encoding/json writes
// it; it knows only what decoded JSON is made of, and is several times faster for
// that. The error names what is not JSON; it is a DepthError for an object that Decode
// would not read.
func Encode(object map[string]any) ([]byte, error) {
	return appendObject(make([]byte, 0, 2048), object, maxDecoded)
}

// EncodeNew is Encode for an object that is to be accepted, without managedFields: a
// DepthError when it is nested more deeply than MaxDepth.
func EncodeNew(object map[string]any) ([]byte, error) {
	return appendObject(make([]byte, 0, 2048), object, MaxDepth)
}

// Append appends the JSON of a value to dst. Errors are those of Encode.
func Append(dst []byte, value any) ([]byte, error) { return appendValue(dst, value, maxDecoded) }

// appendValue appends a value of which at most left levels are accepted.
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
	other, err := json.Marshal(value) // structs that the service itself puts in
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

// appendFloat writes whole numbers without an exponent, like the decoder reads them.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%v is not a number in JSON", f)
	}
	other, err := json.Marshal(f)
	return append(dst, other...), err
}

// appendString writes plain text as it is, and leaves the rest to the library.
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
