package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/frontdoor/internal/wire/accept"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
)

// WriteStatus writes a Status as the response: a Failure, or a Success if its code is below
// 400. A client that accepts none of the possible forms gets JSON.
func (c *Codec) WriteStatus(w http.ResponseWriter, r *http.Request, s *services.Status) {
	if d := s.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	form := c.statusForm(r)
	body, err := appendStatus(form, s)
	if err != nil { // a Status of plain strings and numbers always encodes
		http.Error(w, s.Message, int(s.Code))
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = writeBody(w, int(s.Code), mediaType(form.Media, c.vocabulary), body) // an error means that the client has disconnected
}

// statusForm negotiates the form of a Status: Protobuf is always possible, representations
// other than the whole object never are.
func (c *Codec) statusForm(r *http.Request) Form {
	for _, element := range accept.Parse(strings.Join(r.Header.Values("Accept"), ",")) {
		if element.Params["as"] != "" {
			continue
		}
		switch element.Media {
		case c.vocabulary.Protobuf:
			return Form{Media: Protobuf}
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

func appendStatus(form Form, s *services.Status) ([]byte, error) {
	status := statusObject(s)
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

// statusObject returns the metav1.Status. A Success has a code only if it is 201.
func statusObject(s *services.Status) *metav1.Status {
	o := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: statusKind.Kind, APIVersion: statusKind.Version},
		Status:   metav1.StatusSuccess,
		Message:  s.Message, Reason: metav1.StatusReason(s.Reason),
	}
	switch {
	case s.Code >= http.StatusBadRequest:
		o.Status, o.Code = metav1.StatusFailure, s.Code
	case s.Code == http.StatusCreated:
		o.Code = s.Code
	}
	if d := s.Details; d != nil {
		o.Details = &metav1.StatusDetails{Name: d.Name, Group: d.Group, Kind: d.Kind,
			UID: types.UID(d.UID), RetryAfterSeconds: d.RetryAfterSeconds}
		for _, cause := range d.Causes {
			o.Details.Causes = append(o.Details.Causes, metav1.StatusCause{
				Type: metav1.CauseType(cause.Reason), Message: cause.Message, Field: cause.Field})
		}
	}
	return o
}
