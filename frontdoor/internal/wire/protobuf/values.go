package protobuf

import (
	"encoding/base64"
	"reflect"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// Tags of the fields of leaf messages.
var (
	rawTag         = tagOf(1, protowire.BytesType)
	stringsItemTag = tagOf(1, protowire.BytesType)
	quantityTag    = tagOf(1, protowire.BytesType)

	secondsTag = tagOf(1, protowire.VarintType)
	nanosTag   = tagOf(2, protowire.VarintType)

	intOrStringTypeTag   = tagOf(1, protowire.VarintType)
	intOrStringIntTag    = tagOf(2, protowire.VarintType)
	intOrStringStringTag = tagOf(3, protowire.BytesType)
)

// value writes one value other than null under a tag.
func (t *transcoder) value(tag string, v *value) bool {
	switch v.kind {
	case kindMessage:
		return t.message(tag, v.plan)
	case kindString:
		return t.text(tag)
	case kindRaw:
		t.raw(tag)
		return true
	case kindBool:
		return t.bool(tag)
	case kindInt32, kindInt64:
		n, ok := t.in.Int()
		t.varint(tag, n)
		return ok && (v.kind == kindInt64 || n == int64(int32(n)))
	}
	start := len(t.out)
	if !t.leaf(v) {
		return false
	}
	t.out = closeMessage(t.out, start, start, tag)
	return true
}

// leaf writes a value whose length is not known in advance, without tag and length.
func (t *transcoder) leaf(v *value) bool {
	switch v.kind {
	case kindBytes:
		return t.base64()
	case kindStrings:
		return t.list(stringsItemTag, &value{kind: kindString, zero: "\x00"})
	case kindIntOrString:
		return t.intOrString()
	}
	text, ok := t.in.Skip(), false
	switch v.kind {
	case kindTime:
		ok = t.time(text)
	case kindMicroTime:
		ok = t.microTime(text)
	case kindQuantity:
		ok = t.quantity(text)
	}
	return ok || t.viaGoType(text, v.goType)
}

// viaGoType is the slow path for a leaf: it decodes and encodes it by its Go type.
func (t *transcoder) viaGoType(text []byte, as reflect.Type) bool {
	m := reflect.New(as).Interface()
	if json.UnmarshalCaseSensitivePreserveInts(text, m) != nil {
		return false
	}
	message, err := m.(marshaler).Marshal()
	t.out = append(t.out, message...)
	return err == nil
}

func (t *transcoder) varint(tag string, n int64) {
	t.out = protowire.AppendVarint(append(t.out, tag...), uint64(n))
}

func (t *transcoder) text(tag string) bool {
	if text, ok := t.in.Text(); ok {
		t.out = protowire.AppendVarint(append(t.out, tag...), uint64(len(text)))
		t.out = append(t.out, text...)
		return true
	}
	start, ok := len(t.out), false
	t.out, ok = t.in.AppendString(t.out)
	t.out = closeMessage(t.out, start, start, tag)
	return ok
}

func (t *transcoder) bool(tag string) bool {
	text := t.in.Skip()
	n := int64(0)
	if text.True() {
		n = 1
	}
	t.varint(tag, n)
	return n == 1 || string(text) == "false"
}

// raw writes a message that contains JSON.
func (t *transcoder) raw(tag string) {
	text := t.in.Skip()
	t.out = protowire.AppendVarint(append(t.out, tag...), uint64(fieldSize(len(text))))
	t.out = protowire.AppendVarint(append(t.out, rawTag...), uint64(len(text)))
	t.out = append(t.out, text...)
}

func (t *transcoder) base64() bool {
	text, ok := t.in.Text()
	if !ok {
		return false
	}
	out, err := base64.StdEncoding.AppendDecode(t.out, text)
	t.out = out
	return err == nil
}

func (t *transcoder) intOrString() bool {
	if t.in.Peek() == '"' {
		t.varint(intOrStringTypeTag, 1)
		t.varint(intOrStringIntTag, 0)
		return t.text(intOrStringStringTag)
	}
	n, ok := t.in.Int()
	t.varint(intOrStringTypeTag, 0)
	t.varint(intOrStringIntTag, n)
	t.out = append(append(t.out, intOrStringStringTag...), 0)
	return ok && n == int64(int32(n))
}

// time writes a time in whole seconds; the zero time is an empty message.
func (t *transcoder) time(text rawjson.Value) bool {
	at, ok := parseTime(text)
	if ok && !at.IsZero() {
		t.varint(secondsTag, at.Unix())
		t.varint(nanosTag, 0)
	}
	return ok
}

// microTime writes a time with exactly six decimal places of the second.
func (t *transcoder) microTime(text rawjson.Value) bool {
	const form = `"2006-01-02T15:04:05.000000Z"`
	if len(text) != len(form) || text[len(form)-2] != 'Z' {
		return false
	}
	at, ok := parseTime(text)
	if ok && !at.IsZero() {
		t.varint(secondsTag, at.Unix())
		t.varint(nanosTag, int64(at.Nanosecond()))
	}
	return ok
}

func parseTime(text rawjson.Value) (time.Time, bool) {
	var at time.Time
	if len(text) < 2 || text[0] != '"' {
		return at, false
	}
	err := at.UnmarshalText(text[1 : len(text)-1])
	return at, err == nil
}

// quantity writes a quantity that is canonical already.
func (t *transcoder) quantity(text rawjson.Value) bool {
	if len(text) < 2 || text[0] != '"' || !canonical(text[1:len(text)-1]) {
		return false
	}
	text = text[1 : len(text)-1]
	t.out = protowire.AppendVarint(append(t.out, quantityTag...), uint64(len(text)))
	t.out = append(t.out, text...)
	return true
}

// canonical reports whether a quantity is known to be canonical: a number that has no
// shorter form with a larger unit. It returns false for unusual units.
func canonical(text []byte) bool {
	digits, n := 0, uint64(0)
	for digits < len(text) && digits < 9 && text[digits] >= '0' && text[digits] <= '9' {
		n = 10*n + uint64(text[digits]-'0')
		digits++
	}
	switch {
	case digits == 0 || text[0] == '0':
		return string(text) == "0"
	case len(text) == digits:
		return n%1000 != 0
	}
	switch string(text[digits:]) {
	case "m", "k", "M", "G":
		return n%1000 != 0
	case "Ki", "Mi", "Gi":
		return n%1024 != 0
	}
	return false
}
