package harness

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// Protobuf media type, and the prefix of an envelope.
const Protobuf = "application/vnd.platform.protobuf"

var protoPrefix = []byte{0x6b, 0x38, 0x73, 0x00}

// Envelope is a decoded Protobuf envelope.
type Envelope struct {
	APIVersion, Kind             string
	Raw                          Message
	ContentEncoding, ContentType string
}

// Bytes encodes the envelope.
func (e Envelope) Bytes() []byte {
	var meta, b Message
	meta = meta.Str(1, e.APIVersion).Str(2, e.Kind)
	b = b.Msg(1, meta).Msg(2, e.Raw)
	if e.ContentEncoding != "" {
		b = b.Str(3, e.ContentEncoding)
	}
	if e.ContentType != "" {
		b = b.Str(4, e.ContentType)
	}
	return append(bytes.Clone(protoPrefix), b...)
}

// OpenEnvelope decodes an envelope.
func OpenEnvelope(b []byte) (Envelope, error) {
	var e Envelope
	if !bytes.HasPrefix(b, protoPrefix) {
		return e, fmt.Errorf("expected the prefix % x, got % x", protoPrefix, b[:min(len(b), 8)])
	}
	m := Message(b[4:])
	if err := m.check(); err != nil {
		return e, err
	}
	meta := m.Field(1)
	return Envelope{
		APIVersion: string(meta.Field(1)), Kind: string(meta.Field(2)), Raw: m.Field(2),
		ContentEncoding: string(m.Field(3)), ContentType: string(m.Field(4)),
	}, nil
}

// Envelope decodes the body of a response as a Protobuf envelope.
func (r *Resp) Envelope() Envelope {
	if ct := r.ContentType(); ct != N(Protobuf) {
		r.t.Failf("%s: expected Content-Type %s, got %q (status %d)", r.request, N(Protobuf), ct, r.Code)
	}
	e, err := OpenEnvelope(r.Raw)
	if err != nil {
		r.t.Failf("%s: expected a Protobuf envelope: %v", r.request, err)
	}
	return e
}

// Message is an encoded Protobuf message; the methods append fields.
type Message []byte

func (m Message) Str(field protowire.Number, s string) Message { return m.Msg(field, []byte(s)) }

func (m Message) Msg(field protowire.Number, b []byte) Message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), b)
}

// Pair appends an entry of a map<string, string>.
func (m Message) Pair(field protowire.Number, key, value string) Message {
	return m.Msg(field, Message(nil).Str(1, key).Str(2, value))
}

// Fields returns every length-delimited value of a field.
func (m Message) Fields(field protowire.Number) (values []Message) {
	m.each(func(n protowire.Number, typ protowire.Type, v []byte) {
		if n == field && typ == protowire.BytesType {
			values = append(values, v)
		}
	})
	return values
}

// Field returns the last length-delimited value of a field.
func (m Message) Field(field protowire.Number) Message {
	if f := m.Fields(field); len(f) > 0 {
		return f[len(f)-1]
	}
	return nil
}

// Pairs returns a map<string, string> field.
func (m Message) Pairs(field protowire.Number) map[string]string {
	pairs := map[string]string{}
	for _, e := range m.Fields(field) {
		pairs[string(e.Field(1))] = string(e.Field(2))
	}
	return pairs
}

func (m Message) check() error { return m.each(func(protowire.Number, protowire.Type, []byte) {}) }

func (m Message) each(visit func(protowire.Number, protowire.Type, []byte)) error {
	for b := []byte(m); len(b) > 0; {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if typ == protowire.BytesType {
			v, size := protowire.ConsumeBytes(b)
			if size < 0 {
				return protowire.ParseError(size)
			}
			visit(n, typ, v)
			b = b[size:]
			continue
		}
		size = protowire.ConsumeFieldValue(n, typ, b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		visit(n, typ, b[:size])
		b = b[size:]
	}
	return nil
}

// ProtoMeta encodes ObjectMeta (name 1, generateName 2, namespace 3, labels 11).
func ProtoMeta(name, namespace string, labels map[string]string) Message {
	m := Message(nil).Str(1, name).Str(3, namespace)
	for k, v := range labels {
		m = m.Pair(11, k, v)
	}
	return m
}

// ProtoConfigMap encodes a ConfigMap (metadata 1, data 2) in its envelope.
func ProtoConfigMap(meta Message, data map[string]string) []byte {
	m := Message(nil).Msg(1, meta)
	for k, v := range data {
		m = m.Pair(2, k, v)
	}
	return Envelope{APIVersion: "v1", Kind: "ConfigMap", Raw: m}.Bytes()
}

// ProtoFrame reads one frame of a Protobuf watch stream: a 4-byte big-endian
// length, then the event (type 1, object 2, whose field 1 is an envelope).
func ProtoFrame(r io.Reader) (eventType string, object Envelope, err error) {
	var size uint32
	if err = binary.Read(r, binary.BigEndian, &size); err != nil {
		return
	}
	if size > 1<<20 {
		return "", object, fmt.Errorf("frame of %d bytes", size)
	}
	b := make([]byte, size)
	if _, err = io.ReadFull(r, b); err != nil {
		return
	}
	event := Message(b)
	if bytes.HasPrefix(b, protoPrefix) { // the event itself may come in an envelope
		var e Envelope
		if e, err = OpenEnvelope(b); err != nil {
			return
		}
		event = e.Raw
	}
	if err = event.check(); err != nil {
		return
	}
	object, err = OpenEnvelope(event.Field(2).Field(1))
	return string(event.Field(1)), object, err
}
