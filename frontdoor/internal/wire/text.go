package wire

import (
	"encoding/json"
	"mime"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
)

// Text returns a body of any kind, such as a list, a patch or options, as JSON. It does not
// check bodies that are JSON already.
func (c *Codec) Text(contentType string, body []byte) ([]byte, error) {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "":
		return body, nil
	case err != nil:
		return nil, err
	case strings.HasSuffix(media, "yaml"):
		text, _, err := fromYAML(body)
		return text, err
	case media != c.vocabulary.Protobuf:
		return body, nil
	}
	envelope, err := protobuf.OpenEnvelope(body)
	if err != nil {
		return nil, err
	}
	kind := envelope.Kind
	decoded, err := c.Decode(contentType, body, &catalogue.Type{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	if err != nil {
		return nil, err
	}
	return json.Marshal(decoded.Object)
}

// StatusText returns a Status as JSON.
func StatusText(s *services.Status) ([]byte, error) { return json.Marshal(statusObject(s)) }
