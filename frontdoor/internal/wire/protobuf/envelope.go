package protobuf

import (
	"encoding/binary"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// prefix starts every envelope.
var prefix = [4]byte{0x6b, 0x38, 0x73, 0x00}

// Fields of the messages that this package writes itself.
const (
	unknownTypeMeta        protowire.Number = 1
	unknownRaw             protowire.Number = 2
	unknownContentEncoding protowire.Number = 3
	unknownContentType     protowire.Number = 4

	typeMetaAPIVersion protowire.Number = 1
	typeMetaKind       protowire.Number = 2

	listMetadata protowire.Number = 1
	listItems    protowire.Number = 2

	eventType   protowire.Number = 1
	eventObject protowire.Number = 2
	rawRaw      protowire.Number = 1
)

// Envelope is a decoded envelope with the message in Raw.
type Envelope struct {
	Kind            schema.GroupVersionKind
	Raw             []byte
	ContentEncoding string
	ContentType     string
}

var errNoEnvelope = errors.New("the body is no Protobuf envelope: it must start with the bytes 6b 38 73 00")

// AppendEnvelope appends a message in its envelope.
func AppendEnvelope(dst []byte, kind schema.GroupVersionKind, raw []byte) []byte {
	dst = slices.Grow(dst, envelopeSize(kind, len(raw)))
	dst = appendHead(dst, kind, len(raw))
	return append(append(dst, raw...), Tail...)
}

// Tail is the end of every envelope: an empty contentEncoding and contentType, which
// Kubernetes writes too.
var Tail = string(protowire.AppendString(protowire.AppendTag(protowire.AppendString(protowire.AppendTag(nil,
	unknownContentEncoding, protowire.BytesType), ""), unknownContentType, protowire.BytesType), ""))

// appendHead appends everything before a raw message of the given size.
func appendHead(dst []byte, kind schema.GroupVersionKind, size int) []byte {
	apiVersion := kind.GroupVersion().String()
	dst = append(dst, prefix[:]...)
	dst = protowire.AppendTag(dst, unknownTypeMeta, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(typeMetaSize(apiVersion, kind.Kind)))
	dst = protowire.AppendString(protowire.AppendTag(dst, typeMetaAPIVersion, protowire.BytesType), apiVersion)
	dst = protowire.AppendString(protowire.AppendTag(dst, typeMetaKind, protowire.BytesType), kind.Kind)
	dst = protowire.AppendTag(dst, unknownRaw, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(size))
}

func typeMetaSize(apiVersion, kind string) int {
	return fieldSize(len(apiVersion)) + fieldSize(len(kind))
}

// fieldSize returns the size of a bytes field with a one-byte tag.
func fieldSize(n int) int { return 1 + protowire.SizeBytes(n) }

func envelopeSize(kind schema.GroupVersionKind, raw int) int {
	return len(prefix) + fieldSize(typeMetaSize(kind.GroupVersion().String(), kind.Kind)) + fieldSize(raw) + len(Tail)
}

// OpenEnvelope decodes an envelope.
func OpenEnvelope(body []byte) (Envelope, error) {
	var e Envelope
	if len(body) < len(prefix) || [4]byte(body) != prefix {
		return e, errNoEnvelope
	}
	err := fields(body[len(prefix):], func(n protowire.Number, value []byte) error {
		switch n {
		case unknownTypeMeta:
			return e.openTypeMeta(value)
		case unknownRaw:
			e.Raw = value
		case unknownContentEncoding:
			e.ContentEncoding = string(value)
		case unknownContentType:
			e.ContentType = string(value)
		}
		return nil
	})
	return e, err
}

func (e *Envelope) openTypeMeta(typeMeta []byte) error {
	return fields(typeMeta, func(n protowire.Number, value []byte) error {
		switch n {
		case typeMetaAPIVersion:
			gv, err := schema.ParseGroupVersion(string(value))
			e.Kind.Group, e.Kind.Version = gv.Group, gv.Version
			return err
		case typeMetaKind:
			e.Kind.Kind = string(value)
		}
		return nil
	})
}

// fields visits the length-delimited fields of a message.
func fields(message []byte, visit func(protowire.Number, []byte) error) error {
	return values(message, func(n protowire.Number, kind protowire.Type, value []byte) error {
		if kind != protowire.BytesType {
			return nil
		}
		return visit(n, value)
	})
}

// values visits all fields of a message, those that are numbers without their value.
func values(message []byte, visit func(protowire.Number, protowire.Type, []byte) error) error {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		if kind != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(n, kind, message); size < 0 {
				return protowire.ParseError(size)
			}
			if err := visit(n, kind, nil); err != nil {
				return err
			}
			message = message[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := visit(n, kind, value); err != nil {
			return err
		}
		message = message[size:]
	}
	return nil
}

// ListHead returns the part of a list before its items, which contains the size of all of
// them. The items follow, see AppendItemHead, and then Tail.
func ListHead(kind schema.GroupVersionKind, meta metav1.ListMeta, items int) ([]byte, error) {
	encoded, err := meta.Marshal()
	head := appendHead(nil, kind, fieldSize(len(encoded))+items)
	return protowire.AppendBytes(protowire.AppendTag(head, listMetadata, protowire.BytesType), encoded), err
}

// ItemSize returns the size of an item whose message has the given size.
func ItemSize(message int) int { return fieldSize(message) }

// AppendItemHead appends the tag and length before the message of an item.
func AppendItemHead(dst []byte, message int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, listItems, protowire.BytesType), uint64(message))
}

// AppendFrame appends one frame of a watch: four bytes of length, most
// significant first, then the event with the object in its envelope.
func AppendFrame(dst []byte, event string, kind schema.GroupVersionKind, raw []byte) []byte {
	envelope := envelopeSize(kind, len(raw))
	object := fieldSize(envelope)
	size := fieldSize(len(event)) + fieldSize(object)
	dst = slices.Grow(dst, 4+size)
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = protowire.AppendString(protowire.AppendTag(dst, eventType, protowire.BytesType), event)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, eventObject, protowire.BytesType), uint64(object))
	dst = protowire.AppendVarint(protowire.AppendTag(dst, rawRaw, protowire.BytesType), uint64(envelope))
	return AppendEnvelope(dst, kind, raw)
}
