// Package cbor converts between the JSON of objects and the Concise Binary Object
// Representation (RFC 8949), as Kubernetes writes and reads it with the feature gate
// CBORServingAndStorage. It is generic: it knows no types, and compares nothing with a schema.
package cbor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/portico-platform/portico/services/tree"
)

// The media types of one object and of the events of a watch.
const (
	Media    = "application/cbor"
	Sequence = "application/cbor-seq"
)

// maxItems is how many values a body can have. Without it, one byte could become an empty map
// in memory. perItem is what a value takes in memory at least, in bytes; bodies of lightItems take
// little.
const (
	maxItems   = 1 << 20
	perItem    = 128
	lightItems = 4 << 10
)

const (
	beginMap, beginArray = 0xbf, 0x9f // of no declared length
	end                  = 0xff
)

// selfDescribed is the head of the tag that marks CBOR. Responses begin with it.
var selfDescribed = []byte{0xd9, 0xd9, 0xf7}

// Append appends an object, which is JSON, as a response.
func Append(dst, object []byte) ([]byte, error) {
	return AppendItem(append(dst, selfDescribed...), object)
}

// AppendItem appends an object, which is JSON, as a part of a response.
func AppendItem(dst, object []byte) ([]byte, error) {
	value, err := tree.Decode(object)
	if err != nil {
		return dst, err
	}
	encoded, err := direct.Marshal(value)
	return append(dst, encoded...), err
}

// AppendListHead appends the begin of a list, of which head is the JSON before the first item:
// the items are its last member. The items follow, then what AppendListEnd appends.
func AppendListHead(dst, head []byte) ([]byte, error) {
	cut := bytes.LastIndexByte(head, ',')
	if cut < 0 {
		return dst, errors.New("a list without kind")
	}
	members, err := AppendItem(nil, append(bytes.Clone(head[:cut]), '}'))
	if err != nil {
		return dst, err
	}
	name, err := direct.Marshal(string(bytes.Trim(head[cut+1:], `":[`)))
	dst = append(append(dst, selfDescribed...), beginMap)
	dst = append(append(dst, members[1:]...), name...) // a list has less than 24 members, whose number is in one byte
	return append(dst, beginArray), err
}

// AppendListEnd appends the end of a list.
func AppendListEnd(dst []byte) []byte { return append(dst, end, end) }

// JSON returns a body as JSON. Errors and charge are those of Decode.
func JSON(body []byte, charge func(int) error) ([]byte, error) {
	object, err := Decode(body, charge)
	if err != nil {
		return nil, err
	}
	return tree.Encode(object)
}

// Decode decodes a body that is an object; integers are int64. Besides what is no CBOR, the
// error can be about a member that is there twice, a string that is no UTF-8, a number that
// JSON does not have, too many values, or a depth for which tree has its own error. charge is
// called before with the memory that decoding a large body takes, in bytes; its error is returned.
// It may be nil.
func Decode(body []byte, charge func(int) error) (map[string]any, error) {
	items, err := countItems(body)
	if err == nil && items > lightItems && charge != nil {
		err = charge(items * perItem)
	}
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := direct.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("cbor: %w", err)
	}
	if object == nil { // null
		return map[string]any{}, nil
	}
	if err := tree.CheckValue(object); err != nil {
		return nil, err
	}
	return object, checkText(object)
}

// countItems counts the heads of values. It does not check how they are nested.
func countItems(body []byte) (items int, err error) {
	const byteString, textString = 2, 3
	for ; len(body) > 0; items++ {
		if items == maxItems {
			return items, fmt.Errorf("cbor: more than %d values", maxItems)
		}
		major, argument, size := body[0]>>5, uint64(body[0]&0x1f), 1
		if n := int(argument) - 24; n >= 0 && n < 4 { // the argument is in 1, 2, 4 or 8 bytes
			size += 1 << n
			if len(body) < size {
				return items, nil // the decoder says what is wrong
			}
			var wide [8]byte
			copy(wide[8-1<<n:], body[1:size])
			argument = binary.BigEndian.Uint64(wide[:])
		} else if n >= 4 {
			argument = 0 // of no declared length, or reserved
		}
		body = body[size:]
		if major == byteString || major == textString {
			body = body[min(argument, uint64(len(body))):]
		}
	}
	return items, nil
}

// checkText returns an error if a string is no UTF-8: byte strings are strings too.
func checkText(value any) error {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return errors.New("cbor: a string is no UTF-8")
		}
	case []any:
		for _, item := range v {
			if err := checkText(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range v {
			if err := errors.Join(checkText(name), checkText(member)); err != nil {
				return err
			}
		}
	}
	return nil
}
