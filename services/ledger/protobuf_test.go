package ledger

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"
)

// TestCheckProtobuf: fields are counted at every level before a message is decoded, and texts are not fields.
func TestCheckProtobuf(t *testing.T) {
	text := Text{Name: "the message", Bytes: 1 << 20, Values: 100, Depth: 20, Weight: 10}
	encode := func(m proto.Message) []byte {
		encoded, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	deep := structpb.NewNullValue()
	for range 30 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	packed := protowire.AppendTag(nil, 1, protowire.BytesType)
	for what, c := range map[string]struct {
		message []byte
		of      proto.Message
		want    string
	}{
		"few":        {encode(&typepb.Type{Name: "a", Fields: make([]*typepb.Field, 50)}), &typepb.Type{}, ""},
		"many":       {encode(&typepb.Type{Fields: make([]*typepb.Field, 101)}), &typepb.Type{}, fieldsOf},
		"texts":      {encode(&typepb.Type{Oneofs: make([]string, 101)}), &typepb.Type{}, fieldsOf},
		"within":     {encode(&structpb.ListValue{Values: []*structpb.Value{structpb.NewListValue(&structpb.ListValue{Values: make([]*structpb.Value, 101)})}}), &structpb.ListValue{}, fieldsOf},
		"deep":       {encode(deep), &structpb.Value{}, levels},
		"long text":  {encode(&typepb.Type{Name: strings.Repeat("\x0a\x00", 1000)}), &typepb.Type{}, ""},
		"large":      {encode(&typepb.Type{Name: strings.Repeat("a", 2<<20)}), &typepb.Type{}, bytesOf},
		"no message": {packed, &typepb.Type{}, ""},
	} {
		weight, err := text.CheckProtobuf(c.message, c.of.ProtoReflect().Descriptor())
		var excess *ExcessError
		if errors.As(err, &excess) != (c.want != "") || excess != nil && excess.What != c.want || err == nil && weight < int64(len(c.message)) {
			t.Errorf("%s: weight %d, %v, want %q", what, weight, err, c.want)
		}
	}
}

// FuzzCheckProtobuf: what is decoded has no more fields than were counted.
func FuzzCheckProtobuf(f *testing.F) {
	seed, _ := proto.Marshal(&typepb.Type{Name: "a", Fields: []*typepb.Field{{Name: "b", Options: []*typepb.Option{{Name: "c"}}}}})
	f.Add(seed)
	f.Fuzz(func(t *testing.T, message []byte) {
		m := &typepb.Type{}
		if proto.Unmarshal(message, m) != nil {
			return
		}
		counted := fieldCount{text: Text{Values: 1 << 30, Depth: 10_000}}
		if err := counted.add(message, m.ProtoReflect().Descriptor(), 1); err != nil {
			t.Fatal(err)
		}
		if n := countFields(m.ProtoReflect()); n > counted.fields {
			t.Errorf("%x has %d fields, %d were counted", message, n, counted.fields)
		}
	})
}

func countFields(m protoreflect.Message) (n int) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			for i := range v.List().Len() {
				if n++; f.Message() != nil {
					n += countFields(v.List().Get(i).Message())
				}
			}
		case f.Message() != nil && !f.IsMap():
			n += 1 + countFields(v.Message())
		default:
			n++
		}
		return true
	})
	return n
}
