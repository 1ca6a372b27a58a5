package tree

import (
	"bytes"
	"errors"
	"strconv"
)

var errNoMetadata = errors.New("an object needs a non-empty metadata object")

// MetadataOffset returns the offset just after the opening brace of the
// top-level metadata in an object's JSON: where InsertResourceVersion inserts. The JSON
// must be valid and its metadata not empty.
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

// InsertResourceVersion returns a copy of an object's JSON with metadata.resourceVersion
// inserted at an offset of MetadataOffset.
func InsertResourceVersion(object []byte, offset int, revision int64) []byte {
	var buffer [versionLength]byte
	version := appendVersion(buffer[:0], revision)
	out := make([]byte, 0, len(object)+len(version))
	out = append(append(out, object[:offset]...), version...)
	return append(out, object[offset:]...)
}

// versionLength is the maximum length of what appendVersion appends.
const versionLength = len(`"resourceVersion":"",`) + 20

func appendVersion(b []byte, revision int64) []byte {
	return append(strconv.AppendInt(append(b, `"resourceVersion":"`...), revision, 10), '"', ',')
}

// WithResourceVersion inserts the resourceVersion of a revision into the JSON of an object
// that has none. JSON without metadata is returned unchanged.
func WithResourceVersion(object []byte, revision int64) []byte {
	at, err := MetadataOffset(object)
	if err != nil {
		return object
	}
	return InsertResourceVersion(object, at, revision)
}

// IsVersion reports whether stored is what WithResourceVersion returns.
func IsVersion(stored, object []byte, revision int64) bool {
	at, err := MetadataOffset(object)
	if err != nil {
		return bytes.Equal(stored, object)
	}
	var buffer [versionLength]byte
	version := appendVersion(buffer[:0], revision)
	return len(stored) == len(object)+len(version) && bytes.Equal(stored[:at], object[:at]) &&
		bytes.Equal(stored[at:at+len(version)], version) && bytes.Equal(stored[at+len(version):], object[at:])
}

// WithManagedFields inserts managedFields into the JSON of an object that has none. With
// nil the JSON is returned unchanged.
func WithManagedFields(object []byte, managedFields any) ([]byte, error) {
	if managedFields == nil {
		return object, nil
	}
	at, err := MetadataOffset(object)
	if err != nil {
		return object, err
	}
	const name = `"managedFields":`
	p := pendings.Get().(*pending)
	defer p.free()
	if p.text, err = p.appendValue(p.text[:0], managedFields, maxDecoded); err != nil {
		return object, err
	}
	out := make([]byte, 0, len(object)+len(name)+len(p.text)+1)
	out = append(append(out, object[:at]...), name...)
	out = append(append(out, p.text...), ',')
	return append(out, object[at:]...), nil
}
