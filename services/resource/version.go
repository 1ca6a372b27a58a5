package resource

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// FormatResourceVersion returns a revision as the API's opaque resourceVersion.
func FormatResourceVersion(revision int64) string { return strconv.FormatInt(revision, 10) }

// ParseVersion parses a resourceVersion of this service; "" and "0" are 0.
func ParseVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a resourceVersion of this service", version)
	}
	return int64(revision), nil
}

var errNoMetadata = errors.New("an object needs a non-empty metadata object")

// MetadataOffset returns the offset just after the opening brace of the top-level
// metadata in an object's JSON, where SpliceResourceVersion inserts. The JSON must be
// valid and its metadata not empty.
func MetadataOffset(object []byte) (int, error) {
	depth, key, start := 0, false, 0
	for i := 0; i < len(object); i++ {
		switch object[i] {
		case '{', '[':
			depth++
			key = depth == 1
		case '}', ']':
			depth--
		case ',':
			key = depth == 1
		case '"':
			start = i + 1
			for i++; i < len(object) && object[i] != '"'; i++ {
				if object[i] == '\\' {
					i++
				}
			}
			if i >= len(object) {
				return 0, errNoMetadata
			}
			if key && string(object[start:i]) == "metadata" {
				return intoObject(object, i+1)
			}
			key = false
		}
	}
	return 0, errNoMetadata
}

// intoObject returns the offset after the brace of the non-empty object that
// follows a key.
func intoObject(object []byte, i int) (int, error) {
	rest := bytes.TrimLeft(object[i:], ": \t\r\n")
	if len(rest) < 2 || rest[0] != '{' {
		return 0, errNoMetadata
	}
	inner := bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(inner) == 0 || inner[0] != '"' {
		return 0, errNoMetadata
	}
	return len(object) - len(rest) + 1, nil
}

// SpliceResourceVersion returns a copy of the object with metadata.resourceVersion
// inserted at the offset that MetadataOffset returned.
func SpliceResourceVersion(object []byte, offset int, revision int64) []byte {
	const name = `"resourceVersion":"`
	out := make([]byte, 0, len(object)+len(name)+22)
	out = append(out, object[:offset]...)
	out = append(out, name...)
	out = strconv.AppendInt(out, revision, 10)
	out = append(out, '"', ',')
	return append(out, object[offset:]...)
}
