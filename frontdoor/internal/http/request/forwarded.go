package request

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/portico-platform/portico/services"
)

// Forwarded is what one front door sends to another about a request that it forwards: it has authenticated the
// caller. Only a request that has arrived on a connection of front doors has it.
type Forwarded struct {
	// From is the host of the front door that has received the request of the client, and Remote the
	// address of the client.
	From, Remote string
	User, Caller services.UserInfo
	Impersonated bool
	Constraint   string `json:",omitempty"`
}

// forwardedHeader has it, encoded: values of headers lose white space. On the connections of
// clients it has no meaning.
const forwardedHeader = "X-Portico-Forwarded"

// Forward adds what another front door has to know of a request to the header of the request
// that is sent there.
func (r *Request) Forward(from string, h http.Header) error {
	raw, err := json.Marshal(Forwarded{From: from, Remote: r.RemoteAddr, User: r.User, Caller: r.Caller, Impersonated: r.Impersonated, Constraint: r.Constraint})
	if err != nil {
		return err
	}
	h.Set(forwardedHeader, base64.StdEncoding.EncodeToString(raw))
	return nil
}

// ReadForwarded returns what the header of a request of another front door says, and removes it.
// It returns BadRequest (400) if it does not name the user.
func ReadForwarded(r *http.Request) (*Forwarded, error) {
	f := &Forwarded{}
	raw, err := base64.StdEncoding.DecodeString(r.Header.Get(forwardedHeader))
	if err == nil {
		err = json.Unmarshal(raw, f)
	}
	r.Header.Del(forwardedHeader)
	if err != nil || f.User.Name == "" || f.Caller.Name == "" {
		return nil, services.BadRequest("the header %s has no user", forwardedHeader)
	}
	r.RemoteAddr = f.Remote
	return f, nil
}

// Target is a type, or a subresource of it, by the names in a path.
type Target struct{ Group, Version, Resource, Subresource string }

// Target returns what the path names, whether or not it is served; ok is false for a path
// that is no resource.
func (r *Request) Target() (t Target, ok bool) {
	p := r.path
	return Target{p.group, p.version, p.resource, p.subresource}, p.resource != ""
}

// Handlers returns the handlers of requests of clients and of those that other front doors forward.
func Handlers(serve func(http.ResponseWriter, *http.Request, *Forwarded)) (clients, frontDoors http.Handler) {
	clients = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, nil) })
	return clients, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := ReadForwarded(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		serve(w, r, f)
	})
}
