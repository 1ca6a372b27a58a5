package frontdoor

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

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
	Type        *catalogue.Type
	Subresource *catalogue.Subresource // nil for the resource itself
	Namespace   string
	Name        string
	Subpath     string // what follows a connecting subresource
	// plain serves a path that names no resource.
	plain Handler

	// User is who asks, after impersonation; Caller is who authenticated.
	User, Caller services.UserInfo
	Audit        *auditRecord
	// underway gives the place of a long-running request back.
	underway func()
}

// key returns where the object of the request is kept.
func (r *Request) key() resource.Key {
	return resource.Key{GroupResource: r.Type.Key, Namespace: r.Namespace, Name: r.Name}
}

// attributes returns the question for authorization (section "Authorization notes").
func (r *Request) attributes() services.Attributes {
	a := services.Attributes{User: r.User, Verb: r.Verb}
	if r.Type == nil {
		a.Path = r.URL.Path
		return a
	}
	a.Group, a.Version, a.Resource = r.Type.Group, r.Type.Version, r.Type.Resource
	a.Namespace, a.Name = r.Namespace, r.Name
	if r.Subresource != nil {
		a.Subresource = r.Subresource.Name
	}
	if r.Type.Group == "" && r.Type.Resource == "namespaces" {
		a.Namespace = r.Name // a namespace is in its own scope
	}
	return a
}

// subresourceName returns the name of the subresource, or "".
func (r *Request) subresourceName() string {
	if r.Subresource == nil {
		return ""
	}
	return r.Subresource.Name
}

// errNoPath is the 404 of a path that nothing serves.
func errNoPath() *services.Status {
	return &services.Status{Code: http.StatusNotFound, Reason: services.ReasonNotFound,
		Message: "the server could not find the requested resource", Details: &services.StatusDetails{}}
}

// errMethod is the 405 of a path that does not serve the method.
func errMethod() *services.Status {
	return &services.Status{Code: http.StatusMethodNotAllowed, Reason: services.ReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource", Details: &services.StatusDetails{}}
}

// path is a resource path taken apart (section "Path shapes").
type path struct {
	group, version, resource, namespace, name, subresource, subpath string
	watch                                                           bool // the deprecated /watch/ prefix
}

// parsePath takes a resource path apart; ok is false for every other path. The
// parts are split before they are unescaped, so that a name cannot escape its place.
func parsePath(escaped string) (p path, ok bool) {
	parts := strings.Split(strings.Trim(escaped, "/"), "/")
	for i := range parts {
		part, err := url.PathUnescape(parts[i])
		if err != nil || part == "" {
			return p, false
		}
		parts[i] = part
	}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		p.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		p.group, p.version, parts = parts[1], parts[2], parts[3:]
	default:
		return p, false
	}
	if parts[0] == "watch" && len(parts) > 1 {
		p.watch, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !namespaceSubresource(parts) {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	if len(parts) > 1 {
		p.name = parts[1]
	}
	if len(parts) > 2 {
		p.subresource = parts[2]
	}
	if len(parts) > 3 {
		p.subpath = "/" + strings.Join(parts[3:], "/")
	}
	return p, true
}

// namespaceSubresource tells namespaces/<name>/status from a type in a namespace.
func namespaceSubresource(parts []string) bool {
	return len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
}

// verb returns what a method means on this path; "" when it means nothing.
func (p path) verb(method string, query url.Values) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		watch := query.Get("watch")
		switch {
		case p.subresource != "":
			return "get"
		case p.watch || watch == "1" || watch == "true":
			return "watch"
		case p.name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		if p.name == "" || p.subresource != "" {
			return "create"
		}
	case http.MethodPut:
		if p.name != "" {
			return "update"
		}
	case http.MethodPatch:
		if p.name != "" {
			return "patch"
		}
	case http.MethodDelete:
		if p.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}
