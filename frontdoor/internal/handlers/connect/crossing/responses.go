package crossing

import (
	"net/http"
	"slices"
	"strings"
)

// Answers decides which headers of the responses of a kind of backend reach the client.
type Answers struct {
	also []string // headers that cross beside those of every backend, in the form of plain
	// sealed is false for a backend that seals its responses itself.
	sealed bool
}

var (
	// Content is for nodes, pods and services.
	Content = Answers{sealed: true}
	// Extension is for servers of group versions, whose warnings are for the user.
	Extension = Answers{also: []string{"warning"}, sealed: true}
	// FrontDoor is for other front doors, which have decided about the headers of their backends.
	FrontDoor = Answers{also: []string{"warning", "audit-id", "content-security-policy", "x-content-type-options"}}
)

// crossing are the response headers that describe a response, its content and what the client may
// do next. None has an effect in a browser beyond its own response.
var crossing = []string{
	"accept-patch", "accept-post", "accept-ranges", "age", "allow", "cache-control", "content-disposition", "content-encoding",
	"content-language", "content-length", "content-location", "content-md5", "content-range", "content-type", "digest",
	"etag", "expires", "last-modified", "link", "location", "pragma", "retry-after", "trailer", "vary",
}

// crossingPrefixes begin the names of those of applications and protocols.
var crossingPrefixes = []string{"x-", "grpc-", "docker-"}

// kept are names and prefixes of those that do not cross although they begin with x-: they instruct
// browsers, or proxies between the front door and the client.
var kept = []string{
	"x-content-", "x-webkit-csp", "x-permitted-cross-domain-policies", "x-dns-prefetch-control", "x-xss-protection", "x-accel-",
	"x-sendfile", "x-lighttpd-", "x-litespeed-", "x-reproxy-", "x-remote-", "x-forwarded-", "x-original-", "x-rewrite-",
	"x-portico-", "x-ua-compatible",
}

// ofUpgrade are the headers that a client of an upgrade needs.
var ofUpgrade = []string{"connection", "upgrade"}

// ofUpgradePrefix begins more of them.
const ofUpgradePrefix = "sec-websocket-"

// maxStatus is the highest HTTP status code (RFC 9110 section 15).
const maxStatus = 599

// Status returns the status code that the client gets for that of a backend.
func Status(code int) int {
	if code > maxStatus {
		return http.StatusBadGateway
	}
	return code
}

// crosses reports whether a header of a response reaches the client.
func (a Answers) crosses(name string) bool {
	p := plain(name)
	if slices.Contains(a.also, p) {
		return true
	}
	if strings.ContainsRune(name, '_') || slices.ContainsFunc(kept, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
		return false
	}
	return slices.Contains(crossing, p) || slices.ContainsFunc(crossingPrefixes, func(prefix string) bool { return strings.HasPrefix(p, prefix) })
}

// Response adds those headers of a backend's response that cross to the headers of the front door's
// own, which stay. A header that both have is the backend's, except that Vary and Warning have all
// values. The names of trailers that do not cross are left out.
func (a Answers) Response(own, from http.Header) {
	for name, values := range from {
		switch {
		case !a.crosses(name):
		case name == "Trailer":
			if values = a.trailers(values); len(values) > 0 {
				own[name] = values
			}
		case name == "Vary" || name == "Warning":
			own[name] = append(own[name], values...)
		default:
			own[name] = slices.Clone(values)
		}
	}
	if a.sealed {
		Seal(own)
	}
}

// trailers returns the names in a header Trailer that cross.
func (a Answers) trailers(lists []string) (names []string) {
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); a.crossesAfter(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// crossesAfter reports whether a header crosses after the content. It must not describe that.
func (a Answers) crossesAfter(name string) bool {
	p := plain(name)
	return a.crosses(name) && !slices.Contains(crossing, p) || p == "etag" || p == "digest" || p == "content-md5"
}

// Trailers adds those trailers of a response to its headers that cross, once its content has been
// written: what Response has announced, and what the library marks as a trailer.
func (a Answers) Trailers(own, from http.Header) {
	for name, values := range from {
		if bare, unannounced := strings.CutPrefix(name, http.TrailerPrefix); unannounced && a.crossesAfter(bare) || slices.Contains(own["Trailer"], name) {
			own[name] = slices.Clone(values)
		}
	}
}

// Upgrade returns the headers of the response to a request for an upgrade: with the headers of the
// front door's own response, and those that the protocol needs.
func (a Answers) Upgrade(status int, own, from http.Header) http.Header {
	h := own.Clone()
	if h == nil {
		h = http.Header{}
	}
	a.Response(h, from)
	for name, values := range from {
		if p := plain(name); slices.Contains(ofUpgrade, p) || strings.HasPrefix(p, ofUpgradePrefix) || p == "transfer-encoding" {
			h[name] = slices.Clone(values)
		}
	}
	h.Del("Location") // which nothing rewrites here
	if status == http.StatusSwitchingProtocols {
		for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
			h.Del(name)
		}
	} else {
		h.Set("Connection", "close")
	}
	return h
}

// Seal makes browsers treat a response as a document of an origin of its own, which runs no scripts,
// and as nothing but what its Content-Type says.
func Seal(h http.Header) {
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
}
