package wire

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/frontdoor/internal/wire/table"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Encoder encodes objects of one type in one form, for one request.
//
// Objects come as JSON in the version of the type. Encoded forms are cached by UID and
// Revision: both must be empty for objects that differ from the stored one at that
// revision, such as the result of a dry-run.
type Encoder struct {
	codec *Codec
	form  Form
	t     *catalogue.Type
	rows  *table.Definition // nil unless the form is Table
	// messages are those of the represented kind; nil unless the media is Protobuf.
	messages *protobuf.Message
}

// Encoder returns the encoder for a form that Negotiate returned for the type. The type may
// be nil if it was nil for Negotiate; objects are then written without conversion. For the
// body of a subresource, only Group, Version and Kind are needed.
func (c *Codec) Encoder(f Form, t *catalogue.Type) *Encoder {
	e := &Encoder{codec: c, form: f, t: t}
	if f.As == Table {
		e.rows = table.Define(t.TableColumns(), c.vocabulary)
	}
	if f.Media == Protobuf {
		e.messages = c.messagesOf(f, t)
	}
	return e
}

// messagesOf returns the messages of a form that Negotiate returned. Messages of partial
// metadata are encoded from whole objects, because they ignore all other fields.
func (c *Codec) messagesOf(f Form, t *catalogue.Type) *protobuf.Message {
	kind := c.metaKind(f.MetaVersion, kindPartial)
	if f.As != Partial {
		kind = kindOf(t)
	}
	messages, err := c.messages.Find(kind)
	if err != nil {
		panic(err) // Negotiate has found it
	}
	return messages
}

// Object writes a response with one object. If it returns a *services.Status, nothing has
// been written.
func (e *Encoder) Object(w http.ResponseWriter, code int, o services.Object) error {
	buffer := e.codec.buffer()
	defer e.codec.recycle(buffer)
	body, err := e.AppendObject(*buffer, o)
	if err != nil {
		return services.AsStatus(err)
	}
	*buffer = body
	return writeBody(w, code, e.form.ContentType, body)
}

func writeBody(w http.ResponseWriter, code int, contentType string, body []byte) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, err := w.Write(body)
	return err
}

// AppendObject appends one object as a complete response body.
func (e *Encoder) AppendObject(dst []byte, o services.Object) ([]byte, error) {
	switch {
	case e.form.Media == Protobuf:
		buffer := e.codec.buffer()
		defer e.codec.recycle(buffer)
		message, err := e.message(o, buffer)
		if err != nil {
			return dst, err
		}
		return protobuf.AppendEnvelope(dst, e.messages.Kind, message), nil
	case e.form.Media == JSON && !e.form.Pretty:
		dst, err := e.appendJSON(dst, o, true)
		return append(dst, '\n'), err
	}
	plain, err := e.appendJSON(nil, o, true)
	if err != nil {
		return dst, err
	}
	return appendText(dst, e.form, plain)
}

// appendText appends JSON as a complete response body.
func appendText(dst []byte, form Form, plain []byte) ([]byte, error) {
	if to := form.layout(); to != nil {
		return to.Object(dst, plain)
	}
	return append(append(dst, plain...), '\n'), nil
}

// appendJSON appends the representation of one object in compact JSON. columns adds column
// definitions to a Table; in a watch only the first one has them.
func (e *Encoder) appendJSON(dst []byte, o services.Object, columns bool) ([]byte, error) {
	switch e.form.As {
	case Table:
		dst = e.appendTableHead(dst, ListMeta{Revision: o.Revision, ofObject: true}, columns)
		dst, err := e.appendRow(dst, o)
		return append(dst, "]}"...), err
	case Partial:
		metadata, err := metadataOf(o.JSON)
		return e.appendPartial(dst, metadata), err
	}
	return append(dst, o.JSON...), nil
}

// appendItem appends the representation of one object within a list, in compact JSON.
func (e *Encoder) appendItem(dst []byte, o services.Object) ([]byte, error) {
	if e.form.As == Table {
		return e.appendRow(dst, o)
	}
	if e.form.As == Whole && e.codec.vocabulary.Behaviour.BareItems && e.t != nil && !e.t.Custom {
		return appendBare(dst, o.JSON), nil
	}
	return e.appendJSON(dst, o, false)
}

// appendBare appends an object without kind and apiVersion, which the list implies.
func appendBare(dst, object []byte) []byte {
	dst = append(dst, '{')
	rest := object[min(1, len(object)):]
	for missing := 2; missing > 0; {
		key := rawjson.Size(rest)
		if key == 0 || len(rest) <= key || rest[key] != ':' { // the object lacks one of both
			break
		}
		end := key + 1 + rawjson.Size(rest[key+1:])
		if name := string(rest[:key]); name == `"apiVersion"` || name == `"kind"` {
			missing--
		} else {
			dst = append(append(dst, rest[:end]...), ',')
		}
		if end >= len(rest) || rest[end] != ',' { // the last member
			return append(bytes.TrimSuffix(dst, []byte{','}), rest[end:]...)
		}
		rest = rest[end+1:]
	}
	return append(dst, rest...)
}

func (e *Encoder) appendPartial(dst, metadata []byte) []byte {
	dst = appendTypeMeta(dst, e.codec.metaKind(e.form.MetaVersion, kindPartial))
	dst = append(dst, `,"metadata":`...)
	return append(append(dst, metadata...), '}')
}

// appendTypeMeta appends an opening brace, the kind and the apiVersion.
func appendTypeMeta(dst []byte, kind schema.GroupVersionKind) []byte {
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, kind.Kind...)
	dst = append(dst, `","apiVersion":"`...)
	dst = append(dst, kind.GroupVersion().String()...)
	return append(dst, '"')
}

func (e *Encoder) appendTableHead(dst []byte, meta ListMeta, columns bool) []byte {
	dst = appendTypeMeta(dst, e.codec.metaKind(e.form.MetaVersion, kindTable))
	dst = e.codec.appendListMeta(dst, meta)
	dst = append(dst, `,"columnDefinitions":`...)
	if columns {
		dst = append(dst, e.rows.Columns()...)
	} else {
		dst = append(dst, `null`...)
	}
	return append(dst, `,"rows":[`...)
}

func (e *Encoder) appendRow(dst []byte, o services.Object) ([]byte, error) {
	cells, err := e.cells(o)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"cells":[`...)
	dst = cells.Append(dst, e.codec.now())
	dst = append(dst, ']')
	if cells.Conditions != "" {
		dst = append(dst, `,"conditions":`...)
		dst = append(dst, cells.Conditions...)
	}
	switch e.form.Include {
	case IncludeMetadata:
		dst = append(dst, `,"object":`...)
		dst = e.appendPartial(dst, o.JSON[cells.MetadataStart:cells.MetadataEnd])
	case IncludeObject:
		dst = append(dst, `,"object":`...)
		dst = append(dst, o.JSON...)
	case IncludeNone:
		dst = append(dst, `,"object":null`...)
	}
	return append(dst, '}'), nil
}

func (e *Encoder) cells(o services.Object) (table.Cells, error) {
	key := cacheKey{uid: o.UID, revision: o.Revision, t: e.t, form: cachedCells}
	if made, ok := e.codec.cache.get(key); ok {
		return made.(table.Cells), nil
	}
	cells := e.rows.Cells(o.JSON)
	if cells.MetadataEnd == 0 {
		return table.Cells{}, errors.New("object without metadata")
	}
	if e.codec.cache.wants(key) {
		e.codec.cache.add(key, cells, cells.Size())
	}
	return cells, nil
}

// message returns the Protobuf message of an object's representation: from the cache, or appended
// to a buffer.
func (e *Encoder) message(o services.Object, to *[]byte) (message []byte, err error) {
	key := cacheKey{uid: o.UID, revision: o.Revision, t: e.t, form: cachedMessage}
	if e.form.As == Partial {
		key.form = cachedPartialMessage
	}
	if made, ok := e.codec.cache.get(key); ok {
		return made.([]byte), nil
	}
	before := len(*to)
	*to, err = e.messages.Append(*to, o.JSON)
	message = (*to)[before:]
	if err == nil && e.codec.cache.wants(key) {
		e.codec.cache.add(key, bytes.Clone(message), len(message))
	}
	return message, err
}

// metadataOf returns the JSON of an object's metadata.
func metadataOf(object []byte) ([]byte, error) {
	inside, err := tree.MetadataOffset(object)
	if err != nil {
		return nil, fmt.Errorf("object without metadata: %w", err)
	}
	start := bytes.LastIndexByte(object[:inside], '{')
	return object[start : start+rawjson.Size(object[start:])], nil
}
