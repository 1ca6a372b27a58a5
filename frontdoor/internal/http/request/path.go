package request

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	pathvalidation "k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/release"
)

// Identify parses the path (section "Path shapes"). It returns false for a non-resource
// path, and an error for a malformed one. For a path that is not served it sets Plain,
// which responds after authorization: NotFound (404) for an unknown type, MethodNotAllowed
// (405) for a method that the path does not support.
func (r *Request) Identify(e *typesystem.Engine) (isResource bool, err error) {
	escaped := r.URL.EscapedPath()
	if strings.Count(escaped, "/") > ledger.Path.Values {
		return false, tooLarge(limit.Query, &ledger.ExcessError{Text: ledger.Path, What: "segments", Limit: int64(ledger.Path.Values)})
	}
	if strings.Count(r.URL.RawQuery, "&") >= ledger.Query.Values {
		r.Query, r.URL.RawQuery = url.Values{}, r.URL.RawQuery[:maxNaming] // which later stages parse
		return false, tooLarge(limit.Query, &ledger.ExcessError{Text: ledger.Query, What: "parameters", Limit: int64(ledger.Query.Values)})
	}
	r.Query = r.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		for _, text := range r.Query[name] {
			if err := ledger.CheckSelector(text); err != nil {
				return false, tooLarge(limit.Query, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	if !utf8.ValidString(r.URL.Path) || !validQuery(r.Query) {
		return false, services.BadRequest("the path and the query of a request must be UTF-8")
	}
	p, ok := parsePath(escaped)
	if !ok {
		return false, nil
	}
	r.path, r.Engine, r.Namespace, r.Name, r.Subpath = p, e, p.namespace, p.name, p.subpath
	r.Verb = p.verb(r.Method, r.Query)
	r.Plain = r.find(e)
	return true, nil
}

// find sets the type and subresource of the path. It returns a handler that responds with
// an error if the path is not served.
func (r *Request) find(e *typesystem.Engine) Handler {
	p, types := r.path, e.Types
	t, ok := types.Lookup(p.group, p.version, p.resource)
	if !ok || p.namespace != "" && !t.Namespaced || p.name != "" && t.Namespaced && p.namespace == "" {
		if err := e.Unread(p.group, p.resource); err != nil && !ok {
			return refuse(err)
		}
		if _, known := types.Group(p.group); !known {
			return NoPage
		}
		return refuse(NoPath())
	}
	if p.subresource != "" {
		if r.Subresource = t.Subresources[p.subresource]; r.Subresource == nil || p.subpath != "" && !r.Subresource.Connect {
			return refuse(NoPath())
		}
	}
	if p.name != "" && p.subresource == "" && onlyCreated(t) && !types.Release().Before(release.V136) {
		return refuse(NoPath())
	}
	r.Type = t
	if !r.served() {
		return refuse(r.refused())
	}
	if problems := pathvalidation.IsValidPathSegmentName(p.name); len(problems) > 0 {
		return refuse(services.BadRequest("Name parameter invalid: %q: %s", p.name, strings.Join(problems, ";")))
	}
	return nil
}

// onlyCreated reports whether objects of a type can be created, and nothing else.
func onlyCreated(t *catalogue.Type) bool { return len(t.Verbs) == 1 && t.Can("create") }

// refuse returns a handler that returns an error.
func refuse(err error) Handler {
	return func(http.ResponseWriter, *Request) error { return err }
}

// NoPage writes the 404 of a path outside the API.
func NoPage(w http.ResponseWriter, r *Request) error {
	http.NotFound(w, r.Request)
	return nil
}

// tooLarge returns RequestEntityTooLarge (413).
func tooLarge(kind limit.Limit, err error) error {
	return limit.Exceeded(kind, services.TooLarge("%v", err))
}

func validQuery(q url.Values) bool {
	for name, values := range q {
		for _, v := range values {
			if !utf8.ValidString(v) {
				return false
			}
		}
		if !utf8.ValidString(name) {
			return false
		}
	}
	return true
}

// served reports whether the type, or its subresource, supports the verb on this path.
func (r *Request) served() bool {
	switch {
	case r.Verb == "" || r.path.watch && r.Verb != "watch":
		return false
	case r.Subresource != nil:
		// A connect request must never be authorized as verb watch.
		return r.Subresource.Connect && !r.path.watch || slices.Contains(r.Subresource.Verbs, r.Verb)
	case r.Verb == "create":
		return r.Name == "" && (r.Namespace != "" || !r.Type.Namespaced) && r.Type.Can(r.Verb)
	case r.Verb == "update" || r.Verb == "patch":
		return r.Name != "" && r.Type.Can(r.Verb)
	case r.Verb == "deletecollection" && r.Type.Namespaced && r.Namespace == "":
		return false
	}
	return r.Type.Can(r.Verb)
}

// TerminatingType says why nothing of a custom type can be created.
const TerminatingType = "create not allowed while custom resource definition is terminating"

// refused returns the 405 for a verb that the type does not support.
func (r *Request) refused() *services.Status {
	s := NoMethod()
	if r.Type.Going && r.Verb == "create" {
		s.Message = TerminatingType
	}
	return s
}

// path is a parsed resource path (section "Path shapes").
type path struct {
	group, version, resource, namespace, name, subresource, subpath string
	watch                                                           bool // the deprecated /watch/ prefix
}

// parsePath parses a resource path. ok is false for any other path. It splits before it
// unescapes, so that an escaped slash in a name cannot add segments.
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

// namespaceSubresource distinguishes namespaces/<name>/status from a type in a
// namespace.
func namespaceSubresource(parts []string) bool {
	return len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
}

// verb returns the verb of a method on this path, "" if it has none.
func (p path) verb(method string, query url.Values) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case p.subresource != "" && !p.watch:
			return "get"
		case p.watch || p.name == "" && BoolOption(query, "watch"):
			return "watch"
		case p.name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if p.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}
