package request

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	pathvalidation "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/services"
)

// GroupVersion returns the named group version of the path of a resource or of the group
// version itself. ok is false for every other path, including one with empty segments:
// authorization takes that for a document, but a server might take it for a resource.
func (r *Request) GroupVersion() (group, version string, ok bool) {
	if r.path.resource != "" {
		return r.path.group, r.path.version, r.path.group != ""
	}
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	if len(parts) != 3 || parts[0] != "apis" {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// Extend makes an extension serve the request after authorization, limited by the seats of
// the extension. The path must be that of a resource, or r.GroupVersion must have returned true.
func (r *Request) Extend(serve Handler, seats *inflight.Limiter) {
	r.Type, r.Subresource, r.Plain = nil, nil, serve
	r.ExtensionSeats = seats
	switch {
	case r.path.resource == "":
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			r.Plain = refuse(NoMethod())
		}
	case r.Verb == "":
		r.Plain = refuse(NoMethod())
	case !r.path.unambiguous():
		r.Plain = refuse(services.BadRequest("the path has a segment that servers could understand in different ways"))
	}
}

// ExtensionPath returns the path, escaped, to request from the extension.
func (r *Request) ExtensionPath() string {
	return "/" + strings.TrimLeft(r.URL.EscapedPath(), "/")
}

// unambiguous reports whether every server finds the same group, namespace, name and
// subresource in the path, whether it splits it before or after it unescapes it.
func (p path) unambiguous() bool {
	for _, part := range []string{p.group, p.version, p.resource, p.namespace, p.name, p.subresource} {
		if len(pathvalidation.IsValidPathSegmentName(part)) > 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(p.subpath, "/") {
		if decoded, err := url.PathUnescape(part); err != nil || part == "." || part == ".." || decoded == "." || decoded == ".." {
			return false
		}
	}
	return true
}

// longSubresources are those whose responses may take longer than other requests.
var longSubresources = []string{"attach", "exec", "log", "portforward", "proxy"}

// extendedLongRunning reports whether a response of an extension may take longer than
// other requests.
func (r *Request) extendedLongRunning() bool {
	return r.ExtensionSeats != nil && (slices.Contains(longSubresources, r.path.subresource) || httpstream.IsUpgradeRequest(r.Request))
}
