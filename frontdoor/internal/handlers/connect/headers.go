package connect

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// secret are headers with credentials of the client, or that a backend might take for
// the word of an authenticating proxy.
var secret = []string{"Authorization", "Proxy-Authorization", "Cookie", "Cookie2"}

// secretPrefixes begin the names of more such headers.
var secretPrefixes = []string{"Impersonate-", "X-Remote-"}

// bearerProtocol begins the subprotocol in which a browser's WebSocket carries a token.
const bearerProtocol = "base64url.bearer."

// ofOneHop are headers about the connection itself.
var ofOneHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding"}

// forwarded returns the headers of a request that a backend may see. Those that the client names in
// Connection are left out here: a library that did it later would also leave out what is added to
// them, such as the name of the user.
func forwarded(from http.Header) http.Header {
	h := from.Clone()
	for _, list := range from.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "Upgrade" && httpguts.ValidHeaderFieldName(name) {
				h.Del(name)
			}
		}
	}
	h.Del("Connection")
	for name := range h {
		if slices.ContainsFunc(secretPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			delete(h, name)
		}
	}
	for _, name := range secret {
		h.Del(name)
	}
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
	return h
}

// upgrading returns the headers of a request for an upgrade that a backend may see:
// without those about the connection, except that it is to be upgraded.
func upgrading(from http.Header) http.Header {
	h := forwarded(from)
	for _, name := range ofOneHop {
		h.Del(name)
	}
	h.Set("Connection", "Upgrade")
	return h
}
