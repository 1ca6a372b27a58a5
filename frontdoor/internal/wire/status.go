package wire

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/wire/accept"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/frontdoor/internal/wire/outcome"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
)

// WriteStatus writes the Status of an error as the response: a Failure, or a Success if it is a
// services.Status with a code below 400. A client that accepts none of the possible forms gets JSON.
func (c *Codec) WriteStatus(w http.ResponseWriter, r *http.Request, of error) {
	s := services.AsStatus(of)
	if d := s.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	form := c.statusForm(r)
	body, err := appendStatus(form, of)
	if err != nil { // a Status of plain strings and numbers always encodes
		http.Error(w, s.Message, int(s.Code))
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = writeBody(w, int(s.Code), cmp.Or(form.ContentType, mediaType(form.Media, c.vocabulary)), body) // an error means that the client has disconnected
}

// statusForm negotiates the form of a Status: Protobuf is always possible, representations
// other than the whole object never are.
func (c *Codec) statusForm(r *http.Request) Form {
	for _, element := range accept.Parse(ledger.HeaderList(r.Header, "Accept")) {
		if element.Params["as"] != "" {
			continue
		}
		if c.isProtobuf(element.Media) {
			return Form{Media: Protobuf, ContentType: element.Media}
		}
		switch element.Media {
		case cbor.Media:
			if c.cbor {
				return Form{Media: CBOR}
			}
		case mediaYAML:
			return Form{Media: YAML}
		case mediaJSON, "application/*", "*/*":
			return Form{Pretty: WantsPretty(r, r.URL.Query())}
		}
	}
	return Form{Pretty: WantsPretty(r, r.URL.Query())}
}

func appendStatus(form Form, of error) ([]byte, error) {
	status := outcome.Of(of)
	if form.Media == Protobuf {
		message, err := status.Marshal()
		return protobuf.AppendEnvelope(nil, statusKind, message), err
	}
	plain, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return appendText(nil, form, plain)
}
