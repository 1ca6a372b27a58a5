// Package request parses requests: the path, the query parameters and the body. Request
// also carries the results of the pipeline's stages. The package rejects malformed (400),
// unknown (404) and unsupported (405) requests. It does no I/O except reading the body. It
// serves "Path shapes", "Query parameters" and "Read consistency" of the specification.
package request

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/live"
	"github.com/portico-platform/portico/frontdoor/internal/http/pace"
	"github.com/portico-platform/portico/frontdoor/internal/http/permitted"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/resource"
)

// Handler responds to a request, or returns the error to respond with.
type Handler func(w http.ResponseWriter, r *Request) error

// Request is an HTTP request in the pipeline, with the results of its stages.
type Request struct {
	*http.Request
	Query url.Values

	// Verb is the verb for authorization: get, list, watch, create, update, patch,
	// delete, deletecollection, or the lower-case method for a non-resource path.
	Verb string
	// Engine and the fields after it are set for resource paths.
	Engine      *typesystem.Engine // the types at the time of the request
	Type        *catalogue.Type
	Subresource *catalogue.Subresource // nil for the resource itself
	Namespace   string
	Name        string
	Subpath     string // the rest of the path after a connect subresource
	// path is the parsed path, whether or not the type exists.
	path path
	// Plain serves a non-resource path, or responds with an error to a path that is not
	// served.
	Plain Handler

	// User is the user after impersonation; Caller is the authenticated user.
	User, Caller services.UserInfo
	Impersonated bool
	// Credential is the name of the method of authn that accepted the credentials of Caller; empty for none.
	Credential string
	// Constraint is the verb that allowed constrained impersonation, such as impersonate:user-info. It is
	// empty for plain impersonation, and if the user is not impersonated.
	Constraint string
	// Forwarded is set for a request that another front door has forwarded; nil for others.
	Forwarded *Forwarded
	// Permitted is what a request with permitted=true may read; nil for others.
	Permitted *permitted.Set
	// Live has what was decided about a long-running request; nil for others.
	Live  *live.Request
	Audit *audit.Record
	Trace *Trace
	// Extension is true if an extension serves the request.
	Extension bool
	// Health is true for the path of a health check.
	Health bool

	// Exchange is the underlying connection; nil if there is none.
	Exchange *pace.Exchange
	// Started is called when the response of a connection or a watch has begun. It may be nil.
	Started func(status int)
	// Seat is the request's slot in a concurrency limiter, and Share what it has of its priority
	// level; at most one of them is in use. Memory holds the bytes of its body and of a stalled
	// response.
	Seat   inflight.Seat
	Share  fairness.Seat
	Memory ledger.Hold
	// ExtensionSeats limits the requests to the extension that serves this one; nil if none
	// does.
	ExtensionSeats *inflight.Limiter
	// body is the result of Receive, and bodyErr its error.
	body     []byte
	bodyErr  error
	received bool
	// memory is the ledger that Memory draws from; nil while it holds nothing.
	memory *ledger.Ledger
}

// Stalled implements pace.Holder: a stalled response releases its seat and is charged to
// the user's memory.
func (r *Request) Stalled(left int64) bool {
	return r.Seat.Stall() && r.Share.Stall() && r.grow(left+overhead) == nil
}

// Underway returns the seats of a watch once its response has started.
func (r *Request) Underway(status int) {
	if r.Exchange != nil {
		r.Exchange.Tell(nil)
	}
	r.Seat.Release()
	r.Share.Release()
	if r.Started != nil {
		r.Started(status)
	}
}

// Withdrawn returns the Status with which a long-running request must end, because its caller
// may no longer make it; nil while that is not so.
func (r *Request) Withdrawn() error {
	var why *services.Status
	if errors.As(context.Cause(r.Context()), &why) {
		return why
	}
	return nil
}

// Begin is called when the response of a connection begins. The connection keeps its
// seat, also while its client does not read.
func (r *Request) Begin(status int) {
	if r.Exchange != nil {
		r.Exchange.Tell(nil)
	}
	if r.Started != nil {
		r.Started(status)
	}
}

// Connects reports whether the request connects to a node, a pod or a
// service.
func (r *Request) Connects() bool {
	return r.Plain == nil && r.Subresource != nil && (r.Subresource.Connect || r.LogOfPod())
}

// ToConnection reports whether the path is that of a connection to a node, a pod or a service,
// whichever front door serves it. Logs are none.
func (r *Request) ToConnection() bool {
	if r.Plain == nil && r.Subresource != nil {
		return r.Subresource.Connect
	}
	switch r.path.subresource {
	case "proxy", "exec", "attach", "portforward":
		return r.path.resource == "pods" || r.path.resource == "services" || r.path.resource == "nodes"
	}
	return false
}

// OpensStreams reports whether the request runs a command in a pod, attaches to it or forwards its
// ports.
func (r *Request) OpensStreams() bool {
	if !r.Connects() || r.Type.Group != "" || r.Type.Resource != "pods" {
		return false
	}
	switch r.Subresource.Name {
	case "exec", "attach", "portforward":
		return true
	}
	return false
}

// LogOfPod reports whether the request reads the logs of a container.
func (r *Request) LogOfPod() bool {
	return r.Verb == "get" && r.Type != nil && r.Type.Group == "" && r.Type.Resource == "pods" && r.SubresourceName() == "log"
}

// LongRunning reports whether a response may take longer than other requests.
func (r *Request) LongRunning() bool {
	return r.Verb == "watch" || r.Connects() || r.extendedLongRunning()
}

// Requester returns the requester for per-user limits.
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

// controlPlane is the username prefix of this project's own clients.
const controlPlane = "system:portico:"

// mutates reports whether a handler may read the body of the request.
func (r *Request) mutates() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Plain == nil && (r.Subresource == nil || !r.Subresource.Connect)
	}
	return false
}

// Key returns the storage key of the request's object.
func (r *Request) Key() resource.Key {
	return resource.Key{GroupResource: r.Type.Key, Namespace: r.Namespace, Name: r.Name}
}

// Named returns a NotFound (404) of the store under the group of the request, if groups share the
// objects; other errors as they are.
func (r *Request) Named(err error) error {
	s := services.AsStatus(err)
	if r.Type == nil || r.Type.Group == r.Type.Key.Group || s.Reason != services.ReasonNotFound ||
		s.Details == nil || s.Details.Group != r.Type.Key.Group || s.Details.Kind != r.Type.Key.Resource {
		return err
	}
	return services.NotFound(r.Type.Group, r.Type.Resource, s.Details.Name)
}

// Attributes returns the attributes for authorization (section "Authorization notes").
func (r *Request) Attributes() services.Attributes {
	a := r.Kind()
	if a.Path == "" {
		a.Name = r.selected()
	}
	if r.collects() && !r.path.watch { // whether that prefix has an effect on selectors depends on the path
		a.FieldSelector, a.LabelSelector = r.Query.Get("fieldSelector"), r.Query.Get("labelSelector")
	}
	return a
}

// collects reports whether the request is about the objects of a collection.
func (r *Request) collects() bool {
	return r.Name == "" && (r.Verb == "list" || r.Verb == "watch" || r.Verb == "deletecollection")
}

// Kind returns the attributes by which FlowSchemas classify the request. Its name is that of the
// path.
func (r *Request) Kind() services.Attributes {
	a := services.Attributes{User: r.User, Verb: r.Verb}
	switch {
	case r.Type != nil:
		a.Group, a.Version, a.Resource, a.Subresource = r.Type.Group, r.Type.Version, r.Type.Resource, r.SubresourceName()
	case r.path.resource != "":
		a.Group, a.Version, a.Resource, a.Subresource = r.path.group, r.path.version, r.path.resource, r.path.subresource
	default:
		a.Path = r.URL.Path
		return a
	}
	a.Namespace, a.Name = r.Namespace, r.Name
	if a.Group == "" && a.Resource == "namespaces" {
		a.Namespace = r.Name // a namespace is in its own scope
	}
	return a
}

// selected returns the single name that the request selects, by its path or by the
// field selector of a collection.
func (r *Request) selected() string {
	if !r.collects() {
		return r.Name
	}
	text := r.Query.Get("fieldSelector")
	if len(text) > maxNaming {
		return ""
	}
	selector, err := ledger.ParseFields(text)
	if err != nil {
		return "" // the handler reports the error
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

// maxNaming is the longest field selector that selects a name for authorization, in bytes. It is parsed for
// callers who are not known yet, whom longer ones would cost nothing. The name of a longer one is not used:
// the request needs the right to all objects.
const maxNaming = 4 << 10

// SubresourceName returns the name of the subresource, or "".
func (r *Request) SubresourceName() string {
	if r.Subresource == nil {
		return ""
	}
	return r.Subresource.Name
}

// NoPath returns the 404 of a path that is not served.
func NoPath() *services.Status {
	return &services.Status{Code: http.StatusNotFound, Reason: services.ReasonNotFound,
		Message: "the server could not find the requested resource", Details: &services.StatusDetails{}}
}

// NoMethod returns the 405 of a path that does not support the method.
func NoMethod() *services.Status {
	return &services.Status{Code: http.StatusMethodNotAllowed, Reason: services.ReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource", Details: &services.StatusDetails{}}
}
