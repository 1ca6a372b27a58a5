// Package request is what a request is about: its path taken apart, its query
// parameters read, and what the stages of the pipeline find out on the way. It
// decides what is malformed (400), unknown (404) or not served (405). It does no
// I/O but reading the body, and knows no types but those that the type engine
// names. It serves "Path shapes", "Query parameters" and "Read consistency" of the
// specification.
package request

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/pace"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Handler answers a request or returns the error to answer with.
type Handler func(w http.ResponseWriter, r *Request) error

// Request is an HTTP request on its way through the pipeline: what it is about,
// and what the stages find out about it.
type Request struct {
	*http.Request
	Query url.Values

	// Verb is what authorization is asked for: get, list, watch, create, update,
	// patch, delete, deletecollection, or the method in lower case for a path that
	// names no resource.
	Verb string
	// Type and what follows are set for resource paths.
	Engine      *typesystem.Engine // the types as they were when the request came
	Type        *catalogue.Type
	Subresource *catalogue.Subresource // nil for the resource itself
	Namespace   string
	Name        string
	Subpath     string // what follows a connecting subresource
	// asked is what the path says, whether there is such a type or not.
	asked path
	// Plain serves a path that names no resource, and refuses what is not served.
	Plain Handler

	// User is who asks, after impersonation; Caller is who authenticated.
	User, Caller services.UserInfo
	Audit        *audit.Record
	// Health is true for a path that says how the process is.
	Health bool

	// Exchange is the connection below the request; nil where there is none.
	Exchange *pace.Exchange
	// Seat is the request's place among those that are served, and Memory what its
	// body, and an answer that the client does not take, hold.
	Seat   inflight.Seat
	Memory inflight.Hold
	// body is what Receive has read, and why not all of it.
	body     []byte
	bodyErr  error
	received bool
	// memory is what Memory is taken from; nil as long as it holds nothing.
	memory *inflight.Bytes
}

// Stalled implements pace.Holder: an answer that its client does not take gives the
// seat to others, and is counted as memory of the user.
func (r *Request) Stalled(left int64) bool {
	return r.Seat.Stall() && r.Memory.Grow(r.memory, r.Requester(), int(left)+overhead)
}

// Underway gives the seat of a long-running request back once its answer is under way.
func (r *Request) Underway() {
	if r.Exchange != nil {
		r.Exchange.Tell(nil)
	}
	r.Seat.Release()
}

// Requester returns who asks, for the limits that users share.
func (r *Request) Requester() inflight.Requester {
	who := inflight.Requester{Name: r.User.Name}
	switch {
	case slices.Contains(r.User.Groups, services.GroupMasters):
		who.Class = inflight.Exempt
	case strings.HasPrefix(r.User.Name, controlPlane):
		who.Class = inflight.System
	}
	return who
}

// controlPlane begins the names of the suite's own clients.
const controlPlane = "system:portico:"

// mutates reports whether the request may have a body that a handler reads.
func (r *Request) mutates() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Plain == nil && (r.Subresource == nil || !r.Subresource.Connect)
	}
	return false
}

// Key returns where the object of the request is kept.
func (r *Request) Key() resource.Key {
	return resource.Key{GroupResource: r.Type.Key, Namespace: r.Namespace, Name: r.Name}
}

// Attributes returns the question for authorization (section "Authorization notes").
func (r *Request) Attributes() services.Attributes {
	a := services.Attributes{User: r.User, Verb: r.Verb}
	switch {
	case r.Type != nil:
		a.Group, a.Version, a.Resource, a.Subresource = r.Type.Group, r.Type.Version, r.Type.Resource, r.SubresourceName()
	case r.asked.resource != "":
		a.Group, a.Version, a.Resource, a.Subresource = r.asked.group, r.asked.version, r.asked.resource, r.asked.subresource
	default:
		a.Path = r.URL.Path
		return a
	}
	a.Namespace, a.Name = r.Namespace, r.selected()
	if a.Group == "" && a.Resource == "namespaces" {
		a.Namespace = r.Name // a namespace is in its own scope
	}
	return a
}

// selected returns the one name that the request is about, be it by its path or by the
// field selector of a collection.
func (r *Request) selected() string {
	if r.Name != "" || r.Verb != "list" && r.Verb != "watch" && r.Verb != "deletecollection" {
		return r.Name
	}
	selector, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return "" // the handler says what is wrong with it
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

// SubresourceName returns the name of the subresource, or "".
func (r *Request) SubresourceName() string {
	if r.Subresource == nil {
		return ""
	}
	return r.Subresource.Name
}

// NoPath is the 404 of a path that nothing serves.
func NoPath() *services.Status {
	return &services.Status{Code: http.StatusNotFound, Reason: services.ReasonNotFound,
		Message: "the server could not find the requested resource", Details: &services.StatusDetails{}}
}

// NoMethod is the 405 of a path that does not serve the method.
func NoMethod() *services.Status {
	return &services.Status{Code: http.StatusMethodNotAllowed, Reason: services.ReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource", Details: &services.StatusDetails{}}
}
