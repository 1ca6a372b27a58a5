package ledger

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// CheckProtobuf is Check for a Protobuf message of a type; its values are fields, of the message and of those within.
// A message that cannot be decoded weighs what was found before.
func (t Text) CheckProtobuf(message []byte, of protoreflect.MessageDescriptor) (weight int64, err error) {
	if t.Bytes > 0 && int64(len(message)) > t.Bytes {
		return 0, &ExcessError{t, bytesOf, t.Bytes}
	}
	f := fieldCount{text: t}
	if err := f.add(message, of, 1); err != nil {
		return 0, err
	}
	return int64(len(message)) + int64(f.fields)*t.Weight, nil
}

// fieldCount counts the fields of a message.
type fieldCount struct {
	text   Text
	fields int
}

func (f *fieldCount) add(message []byte, of protoreflect.MessageDescriptor, level int) error {
	if level > f.text.Depth {
		return &ExcessError{f.text, levels, int64(f.text.Depth)}
	}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return nil
		}
		if f.fields++; f.fields > f.text.Values {
			return &ExcessError{f.text, fieldsOf, int64(f.text.Values)}
		}
		value := message[:n]
		message = message[n:]
		field := of.Fields().ByNumber(number)
		if field == nil || kind != protowire.BytesType {
			continue
		}
		content, _ := protowire.ConsumeBytes(value)
		switch {
		case field.Message() != nil:
			if err := f.add(content, field.Message(), level+1); err != nil {
				return err
			}
		case field.IsPacked():
			f.fields += len(content) // each value is a byte or more
		}
	}
	return nil
}
