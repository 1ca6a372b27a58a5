// Package crossing decides which headers of a request reach a backend, and which of its response
// reach the client. Backends are nodes, pods, services, extensions and other front doors. What a
// client sends must not identify it as somebody else to a backend, and what a backend answers
// shares the origin of the API with the answers of all others, so it must not speak for that
// origin to a browser. It serves "Endpoints" of the specification.
package crossing

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// trusted are request headers with credentials of the client, and those that servers take for the
// word of an authenticating or forwarding proxy, in the form of plain.
var trusted = []string{
	"authorization", "proxy-authorization", "cookie", "cookie2", "proxy", "forwarded", "x-real-ip", "x-rewrite-url",
	"x-http-method", "x-http-method-override", "x-method-override", "x-client-cert", "x-arr-clientcert",
}

// trustedPrefixes begin the names of more such headers.
var trustedPrefixes = []string{
	"impersonate-", "x-remote-", "remote-", "x-forwarded-", "x-original-", "x-auth-request-", "x-authenticated-",
	"x-webauth-", "x-ssl-", "ssl-client-", "x-client-cert-", "x-amzn-mtls-", "x-amzn-oidc-", "x-goog-authenticated-",
	"x-goog-iap-", "cf-access-", "tailscale-", "x-portico-",
}

// bearerProtocol begins the subprotocol in which a browser's WebSocket carries a token.
const bearerProtocol = "base64url.bearer."

// ofOneHop are headers about the connection itself.
var ofOneHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding"}

// plain returns a name as servers compare it that give headers to programs as variables: they
// replace what no variable's name may have, so that X_Remote_User is X-Remote-User to them.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
}

// Request returns the headers of a request that a backend may see. hidden are further names, and
// prefixes of names, that must not cross. Those that the client names in Connection are left out
// here: a library that did it later would also leave out what is added to them, such as the name of
// the user. Forwarding headers of the front door itself are added by the library that proxies.
func Request(from http.Header, hidden ...string) http.Header {
	h := from.Clone()
	for _, list := range from.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "Upgrade" && httpguts.ValidHeaderFieldName(name) {
				h.Del(name)
			}
		}
	}
	h.Del("Connection")
	prefixes := slices.Clone(trustedPrefixes)
	for _, name := range hidden {
		prefixes = append(prefixes, plain(name))
	}
	for name := range h {
		p := plain(name)
		if slices.Contains(trusted, p) || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
			delete(h, name)
		}
	}
	withoutBearer(h)
	return h
}

// withoutBearer removes the subprotocols that carry a token.
func withoutBearer(h http.Header) {
	var protocols []string
	for _, list := range h.Values("Sec-Websocket-Protocol") {
		for protocol := range strings.SplitSeq(list, ",") {
			if protocol = strings.TrimSpace(protocol); !strings.HasPrefix(protocol, bearerProtocol) {
				protocols = append(protocols, protocol)
			}
		}
	}
	h.Del("Sec-Websocket-Protocol")
	if len(protocols) > 0 {
		h.Set("Sec-Websocket-Protocol", strings.Join(protocols, ", "))
	}
}

// Upgrading makes the headers of Request those of a request for an upgrade: without those about the
// connection, except that it is to be upgraded. It returns them.
func Upgrading(h http.Header) http.Header {
	for _, name := range ofOneHop {
		h.Del(name)
	}
	h.Set("Connection", "Upgrade")
	return h
}
