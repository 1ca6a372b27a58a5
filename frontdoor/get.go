package frontdoor

import (
	"bytes"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
)

// get serves one object, or the form of it that a subresource shows.
func (d *door) get(w http.ResponseWriter, r *Request) error {
	form, err := d.codec.Negotiate(r.Request, d.bodyType(r), wire.Object)
	if err != nil {
		return err
	}
	o, err := parseReadOptions(r.Query, r.Type)
	if err != nil {
		return err
	}
	object, err := d.storage.Get(r.Context(), services.GetRequest{Key: r.key(), Read: o.getRead()})
	if err != nil {
		return err
	}
	return d.sendObject(w, r, reply{object: object, form: form, status: http.StatusOK})
}

// reply is an object on its way to the client.
type reply struct {
	object services.Object // as stored
	form   wire.Form
	status int
}

// sendObject writes an object in the version and form of the request.
func (d *door) sendObject(w http.ResponseWriter, r *Request, p reply) error {
	object, err := d.show(p.object, r)
	if err != nil {
		return err
	}
	return d.codec.Encoder(p.form, d.bodyType(r)).Object(w, p.status, object)
}

// show returns the object as the path shows it.
func (d *door) show(object services.Object, r *Request) (services.Object, error) {
	s := d.subjectOf(r)
	if s == (itself{}) {
		return d.view(object, r.Type)
	}
	live, err := d.decodeStored(object, r.Type)
	if err != nil {
		return object, err
	}
	shown, err := s.show(live)
	if err != nil {
		return object, err
	}
	object.JSON, err = encodeObject(shown)
	return object, err
}

// view returns a stored object in the version of a type: the stored bytes
// themselves when that is the stored version.
func (d *door) view(object services.Object, t *catalogue.Type) (services.Object, error) {
	if bytes.HasPrefix(object.JSON, d.heads[t]) {
		return object, nil
	}
	converted, err := d.decodeStored(object, t)
	if err != nil {
		return object, err
	}
	object.JSON, err = encodeObject(converted)
	return object, err
}

// headOf is how the stored JSON of a type's objects begins: encodeObject sorts
// members by name, and apiVersion comes first.
func headOf(t *catalogue.Type) []byte {
	return []byte(`{"apiVersion":"` + t.APIVersion() + `",`)
}
