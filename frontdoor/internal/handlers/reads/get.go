package reads

import (
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// Get serves one object, or a subresource of it.
func (h *Handlers) Get(w http.ResponseWriter, r *request.Request) error {
	form, err := h.Codec.Negotiate(r.Request, r.Engine.BodyType(r.Type, r.Subresource), wire.Object)
	if err != nil {
		return err
	}
	o, err := request.ParseGetOptions(r.Query)
	if err != nil {
		return err
	}
	ctx, span := tracing.Start(r.Context(), "read")
	object, err := h.Store.Get(ctx, services.GetRequest{Key: r.Key(), Read: o.GetRead()})
	span.End(err)
	if err != nil {
		return err
	}
	return Reply{Object: object, Form: form, Status: http.StatusOK}.Send(w, r, h.Codec)
}

// Reply is an object to be sent to the client.
type Reply struct {
	Object services.Object // as stored
	Form   wire.Form
	Status int
}

// Send writes the object in the version and form of the request.
func (p Reply) Send(w http.ResponseWriter, r *request.Request, codec *wire.Codec) (err error) {
	ctx, span := tracing.Start(r.Context(), "encoded")
	defer func() { span.End(err) }()
	object, err := r.Engine.Show(ctx, p.Object, r.Type, r.Subresource)
	if err != nil {
		return err
	}
	return codec.Encoder(p.Form, r.Engine.BodyType(r.Type, r.Subresource)).Object(w, p.Status, object)
}
