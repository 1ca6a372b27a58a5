package wire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/frontdoor/internal/wire/layout"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/tree"
)

// Body is the decoded body of a request.
type Body struct {
	// Object is the object; integers are int64.
	Object map[string]any
	// Strict holds errors that only a strict decoder reports: duplicate fields, of which
	// the last one wins.
	Strict []string
	// JSON is the text of a body in JSON; nil for other media types.
	JSON []byte
}

// Charge reserves the additional memory for decoding a body. Its error refuses the request before the body is
// decoded. It may be nil.
type Charge func(bytes int) error

// Decode decodes the body of a request. The object must be of the type, of which only
// Group, Version and Kind are used. An empty content type means JSON. It returns
// UnsupportedMediaType (415) for other media types than the accepted ones, and BadRequest
// (400) for a body that cannot be decoded or is of another kind. Text is not charged: its parts
// are counted when it is received.
func (c *Codec) Decode(contentType string, body []byte, t *catalogue.Type, charge Charge) (Body, error) {
	kind := kindOf(t)
	media, err := c.bodyMedia(contentType, kind)
	if err != nil {
		return Body{}, err
	}
	var b Body
	switch media {
	case Protobuf:
		b, err = c.decodeProtobuf(body, kind, charge)
	case CBOR:
		b.Object, err = cbor.Decode(body, charge)
	default:
		b, err = decodeText(media, body)
	}
	if err == nil {
		err = CheckKind(b.Object, t)
	}
	var status *services.Status
	if err != nil && !errors.As(err, &status) {
		err = limit.Deep(err, services.BadRequest("the object provided is unrecognized (must be of type %s): %v (%s)", kind.Kind, err, summary(body)))
	}
	return b, err
}

// summary returns the start of an undecodable body for the message: as text if it looks
// like a JSON object, else in hexadecimal.
func summary(body []byte) string {
	const longest = 30
	if len(body) == 0 {
		return "<empty>"
	}
	shown, more := body, ""
	if len(body) > longest {
		shown, more = body[:longest], " ..."
	}
	if body[0] == '{' {
		return string(shown) + more
	}
	return hex.EncodeToString(shown) + more
}

// DecodeText decodes JSON or YAML of any kind, such as the body of a patch. It returns
// BadRequest (400) if the body is not an object.
func DecodeText(media Media, body []byte) (Body, error) {
	b, err := decodeText(media, body)
	if err != nil {
		return b, limit.Deep(err, services.BadRequest("the body is no object: %v", err))
	}
	return b, nil
}

// perOptionByte is what each byte of DeleteOptions in Protobuf takes: two are an empty string, in a
// list that grows by copies.
const perOptionByte = 16

// DeleteOptions decodes the body of a DELETE; an empty one means default options. Errors
// are those of Decode.
func (c *Codec) DeleteOptions(contentType string, body []byte, charge Charge) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(body) == 0 {
		return options, nil
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
	media, err := c.bodyMedia(contentType, kind)
	if err != nil {
		return nil, err
	}
	if media == Protobuf {
		var envelope protobuf.Envelope
		if envelope, err = protobuf.OpenEnvelope(body); err == nil && charge != nil {
			err = charge(perOptionByte * len(envelope.Raw))
		}
		if err == nil {
			options.Kind = envelope.Kind.Kind
			err = options.Unmarshal(envelope.Raw)
		}
	} else {
		switch media {
		case YAML:
			body, _, err = layout.FromYAML(body)
		case CBOR:
			body, err = cbor.JSON(body, charge)
		}
		if err == nil {
			err = json.UnmarshalCaseSensitivePreserveInts(body, options)
		}
	}
	var status *services.Status
	switch {
	case errors.As(err, &status):
		return nil, err
	case err != nil:
		return nil, services.BadRequest("%v", err)
	}
	if options.Kind != "" && options.Kind != kind.Kind {
		return nil, services.BadRequest("%s cannot be handled as a %s", options.Kind, kind.Kind)
	}
	return options, nil
}

// CheckMedia returns UnsupportedMediaType (415) for a Content-Type that bodies of a type cannot have.
func (c *Codec) CheckMedia(contentType string, t *catalogue.Type) error {
	_, err := c.bodyMedia(contentType, kindOf(t))
	return err
}

// bodyMedia returns the encoding for a Content-Type, or a 415 if bodies of the kind cannot
// have it.
func (c *Codec) bodyMedia(contentType string, kind schema.GroupVersionKind) (Media, error) {
	if contentType == "" || contentType == mediaJSON { // of almost all requests
		return JSON, nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == mediaJSON:
		return JSON, nil
	case err == nil && media == mediaYAML:
		return YAML, nil
	}
	accepted := []string{mediaJSON, mediaYAML}
	if c.messages.Knows(kind) {
		accepted = append(accepted, c.vocabulary.Protobuf)
	}
	if c.cbor {
		accepted = append(accepted, cbor.Media)
	}
	switch {
	case err == nil && c.cbor && media == cbor.Media:
		return CBOR, nil
	case err == nil && c.isProtobuf(media) && c.messages.Knows(kind):
		return Protobuf, nil
	}
	return 0, UnsupportedMediaType(accepted...)
}

// UnsupportedMediaType returns a 415 that lists the accepted media types.
func UnsupportedMediaType(accepted ...string) *services.Status {
	return &services.Status{Code: http.StatusUnsupportedMediaType, Reason: services.ReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", ")}
}

func decodeText(media Media, body []byte) (Body, error) {
	var b Body
	var err error
	if media == JSON {
		b.JSON = body
	}
	if media == YAML {
		if body, b.Strict, err = layout.FromYAML(body); err != nil {
			return b, err
		}
	}
	if object, ok := tree.DecodePlain(body); ok {
		b.Object = object
		return b, nil
	}
	if err := tree.CheckDepth(body); err != nil {
		return b, err
	}
	strict, err := json.UnmarshalStrict(body, &b.Object, json.DisallowDuplicateFields)
	if err != nil {
		return b, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	for _, e := range strict {
		if media == JSON { // those of YAML are known already, by their lines
			b.Strict = append(b.Strict, e.Error())
		}
	}
	if b.Object == nil { // null
		b.Object = map[string]any{}
	}
	return b, nil
}

func (c *Codec) decodeProtobuf(body []byte, kind schema.GroupVersionKind, charge Charge) (Body, error) {
	envelope, err := protobuf.OpenEnvelope(body)
	if err != nil {
		return Body{}, err
	}
	switch {
	case envelope.ContentEncoding != "":
		return Body{}, fmt.Errorf("unknown content encoding %q in the Protobuf envelope", envelope.ContentEncoding)
	case envelope.ContentType == mediaJSON:
		return decodeText(JSON, envelope.Raw)
	case envelope.ContentType == mediaYAML:
		return decodeText(YAML, envelope.Raw)
	case envelope.ContentType != "" && !c.isProtobuf(envelope.ContentType):
		return Body{}, fmt.Errorf("unknown content type %q in the Protobuf envelope", envelope.ContentType)
	case envelope.Kind != kind && envelope.Kind != schema.GroupVersionKind{}:
		return Body{Object: map[string]any{"apiVersion": envelope.Kind.GroupVersion().String(), "kind": envelope.Kind.Kind}}, nil
	}
	messages, err := c.messages.Find(kind)
	if err != nil {
		return Body{}, err
	}
	object, err := messages.Decode(envelope.Raw, charge)
	if err == nil {
		err = tree.CheckValue(object) // nested raw JSON can have any depth
	}
	return Body{Object: object}, err
}

// CheckKind checks that the apiVersion and kind of an object match the type. For built-in
// types it sets missing values; for custom types they are required.
func CheckKind(object map[string]any, t *catalogue.Type) error {
	want := kindOf(t)
	for _, f := range []struct{ name, spelled, want string }{{"kind", "Kind", want.Kind}, {"apiVersion", "apiVersion", want.GroupVersion().String()}} {
		given, isText := object[f.name].(string)
		switch {
		case given != "":
		case !isText && object[f.name] != nil:
			return services.BadRequest("the object provided is unrecognized (must be of type %s): its %s is no string", want.Kind, f.name)
		case t.Custom:
			return services.BadRequest("Object '%s' is missing: a %s needs kind and apiVersion", f.spelled, want.Kind)
		default:
			object[f.name] = f.want
		}
	}
	kind, version := object["kind"].(string), object["apiVersion"].(string)
	switch {
	case kind != want.Kind:
		return services.BadRequest("%s in version %q cannot be handled as a %s", kind, version[strings.LastIndexByte(version, '/')+1:], want.Kind)
	case version != want.GroupVersion().String():
		return services.BadRequest("the API version in the data (%s) does not match the expected API version (%s)", version, want.GroupVersion())
	}
	return nil
}
