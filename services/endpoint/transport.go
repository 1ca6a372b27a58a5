package endpoint

import (
	"net"
	"net/http"
	"time"
)

const (
	// DialTimeout bounds the time to connect to a server, and then that of the TLS handshake.
	DialTimeout = 10 * time.Second
	// silentFor is how long a connection of HTTP/2 may be silent before it is probed, and then
	// until it is closed.
	silentFor = 5 * time.Second
)

// Bound bounds how long a transport waits for a server that does not answer, and returns it. Its
// dialer is kept if it has one. Without the probes, all requests to a server whose machine is gone
// share one connection and wait, until TCP gives it up after a quarter of an hour.
func Bound(t *http.Transport) *http.Transport {
	if t.DialContext == nil {
		t.DialContext = (&net.Dialer{Timeout: DialTimeout}).DialContext
	}
	t.TLSHandshakeTimeout = DialTimeout
	t.ForceAttemptHTTP2 = true // which a transport with its own dialer or TLS configuration does not
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: silentFor, PingTimeout: silentFor}
	return t
}
