package extensions

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// extension is a registration with what is kept while it exists.
type extension struct {
	registration
	*kept
	handlers *Handlers
}

// kept is what stays the same when the object of an extension changes.
type kept struct {
	seats *inflight.Limiter

	mu        sync.Mutex
	trust     trustKey
	transport *http.Transport
	err       error // why there is no transport
	schedule
	documents
}

// trustKey identifies a transport.
type trustKey struct {
	serverName, authorities string
	insecure                bool
	identity                *tls.Certificate
}

// over returns the transport to the extension. One for other authorities or with another
// client certificate replaces it, so that connections with those before are not used again.
func (x *extension) over() (*http.Transport, error) {
	wanted := trustKey{x.service.ServerName(), x.authorities, x.insecure, x.handlers.identity()}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.trust == wanted && (x.transport != nil || x.err != nil) {
		return x.transport, x.err
	}
	if x.transport != nil {
		x.transport.CloseIdleConnections()
	}
	x.trust = wanted
	x.transport, x.err = x.handlers.Connections.Transports.Extension(outbound.Trust{ServerName: wanted.serverName,
		Authorities: []byte(wanted.authorities), Insecure: wanted.insecure, Identity: wanted.identity})
	return x.transport, x.err
}

// forget closes what is open to an extension that is gone.
func (k *kept) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.transport != nil {
		k.transport.CloseIdleConnections()
	}
}

// serve proxies a request to the extension. It returns Unavailable (503) if the condition of the extension says
// that it is not available, or if it cannot be reached, and Forbidden (403) for a user whom headers cannot
// name.
func (x *extension) serve(w http.ResponseWriter, r *request.Request) error {
	if err := nameable(r.User); err != nil {
		return err
	}
	if x.unread != nil {
		return x.unread
	}
	if x.condition.status != "True" {
		return services.Unavailable("service unavailable: %s is not available", x.groupVersion())
	}
	host, over, err := x.way(r.Context())
	if err != nil {
		return services.Unavailable("service unavailable: %v", err)
	}
	return x.handlers.Connections.Extend(w, r, connect.Extension{Host: host, Transport: over, Hidden: x.handlers.Hidden})
}

// way returns the address of a server of the extension, and the transport to it.
func (x *extension) way(ctx context.Context) (host string, over *http.Transport, err error) {
	if host, err = x.handlers.Services.One(ctx, x.service); err != nil {
		return "", nil, err
	}
	over, err = x.over()
	return host, over, err
}
