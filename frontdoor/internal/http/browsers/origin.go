package browsers

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// Values of the header Sec-Fetch-Site (Fetch Metadata): whose page has caused a request. Pages cannot
// set it.
const (
	sameOrigin = "same-origin"
	byUser     = "none"
)

// Guarded is the stage before authentication that refuses what a page of another origin can make a
// browser send: upgrades, whose answers it could read, and writes. A browser adds its credentials to
// these. Bodies from browsers need a Content-Type, which pages of other origins cannot choose.
// Requests that other front doors have forwarded are checked there.
func (h *Headers) Guarded(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Forwarded == nil {
			if err := h.guard(r); err != nil {
				return err
			}
		}
		return next(w, r)
	}
}

func (h *Headers) guard(r *request.Request) error {
	if err := h.CheckOrigin(r.Request); err != nil {
		return err
	}
	switch {
	case fromBrowser(r.Request) && r.ContentLength != 0 && r.Header.Get("Content-Type") == "" && !reads(r.Method):
		return &services.Status{Code: http.StatusUnsupportedMediaType, Reason: services.ReasonUnsupportedMediaType,
			Message: "the body of a request from a browser must have a Content-Type"}
	case h.ConsoleHost != "" && h.consoles(r.Host) && (r.Extension || r.ToConnection()):
		return forbidden("the host of the console serves no extensions and no connections to nodes, pods and services")
	}
	return nil
}

// CheckOrigin returns Forbidden (403) for an upgrade or a write that a page of another origin has
// caused, and for the script of a service worker: the API has none.
func (h *Headers) CheckOrigin(r *http.Request) error {
	switch {
	case r.Header.Get("Service-Worker") != "":
		return forbidden("no path of this host is the script of a service worker")
	case (upgrades(r) || !reads(r.Method)) && h.foreign(r):
		return forbidden(otherOrigin)
	}
	return nil
}

const otherOrigin = "the request comes from a page of another origin; --cors-allowed-origins names origins whose pages may use the API"

// Ambient is the stage after authentication that refuses what a browser authenticates by itself, with
// a certificate that its user has chosen once, when a page of another origin has caused it, or when
// the name of the host is not one of the front door's: it may then be that of a page that was made to
// resolve to this address.
func (h *Headers) Ambient(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Forwarded != nil || r.Credential != services.ByCertificate && r.Credential != services.ByProxy {
			return next(w, r)
		}
		if h.foreign(r.Request) {
			return forbidden(otherOrigin)
		}
		if r.Credential == services.ByCertificate { // the host that a proxy is reached by is its own
			if err := h.CheckHost(r.Request); err != nil {
				return err
			}
		}
		return next(w, r)
	}
}

// CheckHost returns Forbidden (403) for a request of a browser that names a host which is not the front
// door's: a name of its certificates or of the flags. Addresses are not checked, because no other
// page has them as its host.
func (h *Headers) CheckHost(r *http.Request) error {
	host := strings.TrimSuffix(hostname(r.Host), ".")
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil, !fromBrowser(r), host == "localhost", strings.HasSuffix(host, ".localhost"):
		return nil
	case h.consoles(r.Host), h.hosts[host], h.Names != nil && h.Names(host):
		return nil
	}
	return forbidden("the host name is in no serving certificate of the front door; --browser-hosts names further hosts")
}

// fromBrowser reports whether a browser has sent the request. Other clients send none of these headers.
func fromBrowser(r *http.Request) bool {
	for _, name := range []string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
		if len(r.Header[name]) > 0 {
			return true
		}
	}
	return false
}

// foreign reports whether a page of another origin has caused a request, or may have.
func (h *Headers) foreign(r *http.Request) bool {
	origins, sites := r.Header["Origin"], r.Header["Sec-Fetch-Site"]
	if len(origins) > 1 || len(sites) > 1 {
		return true
	}
	site := ""
	if len(sites) > 0 {
		site = sites[0]
	}
	if len(origins) == 0 {
		return site != "" && site != sameOrigin && site != byUser
	}
	origin := origins[0]
	switch {
	case h.allowed(origin), h.ConsoleHost != "" && isOrigin(origin, net.JoinHostPort(h.ConsoleHost, port(r.Host))):
		return false
	case site != "" && site != sameOrigin && site != byUser:
		return true
	case isOrigin(origin, r.Host):
		return false
	}
	// A proxy between the browser and the front door may have replaced the host. The browser then says
	// that it is the origin of the page: accepted of proxies on the user's machine, such as that of
	// kubectl, and with credentials that no page of another origin can add. Some libraries for
	// WebSockets always name an origin, and their programs name localhost.
	explicit, local := r.Header.Get("Authorization") != "", onThisMachine(origin)
	if site == sameOrigin {
		return !explicit && !local
	}
	return site == byUser || !explicit || !local
}

// isOrigin reports whether an origin is that of a host with an optional port.
func isOrigin(origin, host string) bool {
	scheme, rest, _ := strings.Cut(origin, "://")
	return strings.EqualFold(scheme, "https") && rest != "" && hostname(rest) == hostname(host) && port(rest) == port(host)
}

// onThisMachine reports whether an origin is that of a server on the machine of the browser.
func onThisMachine(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// consoles reports whether a host is that of the console.
func (h *Headers) consoles(host string) bool { return hostname(host) == h.ConsoleHost }

// ServesConsole reports whether the console is served for the host of a request.
func (h *Headers) ServesConsole(r *http.Request) bool {
	return h.ConsoleHost == "" || h.consoles(r.Host)
}

// hostname returns the lower-case name or address of a host with an optional port.
func hostname(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return strings.ToLower(name)
}

// port returns the port of a host; that of HTTPS if it has none.
func port(host string) string {
	if _, port, err := net.SplitHostPort(host); err == nil && port != "" {
		return port
	}
	return "443"
}

// reads reports whether a method only reads.
func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// upgrades reports whether a request is for another protocol.
func upgrades(r *http.Request) bool {
	return len(r.Header["Upgrade"]) > 0 || len(r.Header["Sec-Websocket-Key"]) > 0
}

// forbidden returns a 403 without the subject of a denied authorization.
func forbidden(why string) error {
	return &services.Status{Code: http.StatusForbidden, Reason: services.ReasonForbidden, Message: why}
}
