package wire

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/frontdoor/internal/wire/layout"
	"github.com/portico-platform/portico/frontdoor/internal/wire/outcome"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
)

// Text returns a body of any kind, such as a list, a patch or options, as JSON. It does not
// check bodies that are JSON already. It is for bodies that a request has been charged for.
func (c *Codec) Text(contentType string, body []byte) ([]byte, error) {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "":
		return body, nil
	case err != nil:
		return nil, err
	case strings.HasSuffix(media, "yaml"):
		text, _, err := layout.FromYAML(body)
		return text, err
	case c.cbor && strings.HasSuffix(media, "cbor"):
		return cbor.JSON(body, nil)
	case !c.isProtobuf(media):
		return body, nil
	}
	envelope, err := protobuf.OpenEnvelope(body)
	if err != nil {
		return nil, err
	}
	kind := envelope.Kind
	decoded, err := c.Decode(contentType, body, &catalogue.Type{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(decoded.Object)
}

// Apply returns the body of an apply in CBOR as JSON, which is an apply in YAML. It returns
// UnsupportedMediaType (415) if that encoding is off, and BadRequest (400) if the body cannot
// be decoded.
func (c *Codec) Apply(body []byte, charge Charge) ([]byte, error) {
	if !c.cbor {
		return nil, &services.Status{Code: http.StatusUnsupportedMediaType, Reason: services.ReasonUnsupportedMediaType, Message: "415: Unsupported Media Type"}
	}
	plain, err := cbor.JSON(body, charge)
	var status *services.Status
	if err != nil && !errors.As(err, &status) {
		return nil, limit.Deep(err, services.BadRequest("error decoding patch: %v", err))
	}
	return plain, err
}

// StatusText returns a Status as JSON.
func StatusText(s *services.Status) ([]byte, error) { return json.Marshal(outcome.Of(s)) }
