package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/portico-platform/portico/services/kit/run/peertls"
)

const (
	// requests is the name of the protocol (ALPN) of requests that one front door forwards to another:
	// HTTP/1.1, whose connections can be upgraded.
	requests = "portico-frontdoor-requests/1"
	// idleHere is how long a connection without a request is kept. The other side closes it
	// earlier, after idleThere, so that it sends no request on one that is about to end.
	idleHere, idleThere = 2 * time.Minute, 90 * time.Second
	// maxIdle is the number of idle connections to one front door, and maxHeader bounds the header of a response.
	maxIdle, maxHeader = 32, 256 << 10
)

// errProtocol is the error of a server that does not support the protocol.
var errProtocol = errors.New("it does not accept requests of other front doors")

// Protocols returns the protocols of front doors for the port, none without an identity.
func (p *Peers) Protocols() map[string]func() *tls.Config {
	if p.Identity == nil {
		return nil
	}
	return map[string]func() *tls.Config{
		protocol: func() *tls.Config { return p.Identity.ServerConfig(protocol) },
		requests: func() *tls.Config { return p.Identity.ServerConfig(requests) },
	}
}

// Serve makes the server of the port also serve other front doors: their questions, and by handler the requests
// that they forward. No request of a client reaches handler. Call closeAll when the server has ended.
func (p *Peers) Serve(server *http.Server, handler http.Handler) (closeAll func()) {
	server.Protocols = &http.Protocols{}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	queue := &queue{conns: make(chan net.Conn), closed: make(chan struct{})}
	inner := &http.Server{Handler: handler, ReadHeaderTimeout: server.ReadHeaderTimeout, IdleTimeout: idleHere, MaxHeaderBytes: server.MaxHeaderBytes, ErrorLog: server.ErrorLog}
	go func() { _ = inner.Serve(queue) }()
	server.RegisterOnShutdown(func() {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		_ = inner.Shutdown(ctx) // closes the connections without a request; the server waits for the others
	})
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		protocol: func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
			if err := p.answer(conn); err != nil {
				p.Log.Debug("responding to another front door failed", "remote", conn.RemoteAddr().String(), "error", err)
			}
		},
		requests: func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
			if p.allowed(conn) {
				queue.serve(conn)
			}
		}}
	return func() { _ = inner.Close() } // which a server that was not shut down has not ended
}

// allowed reports whether the other side of a connection is a front door. The handshake is
// complete: it has a certificate of the suite's authority.
func (p *Peers) allowed(conn *tls.Conn) bool {
	names := peertls.Services(conn.ConnectionState())
	if slices.Contains(names, service) {
		return true
	}
	p.Log.Warn("call refused: only front doors may call", "caller", names)
	return false
}

// queue is the listener of the server of requests. Its connections are those of the port.
type queue struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// serve returns when the server has closed the connection, since the port closes it then.
func (q *queue) serve(conn net.Conn) {
	c := &served{Conn: conn, done: make(chan struct{})}
	select {
	case q.conns <- c:
		<-c.done
	case <-q.closed:
	}
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *queue) Addr() net.Addr { return &net.TCPAddr{} }

// served is a connection that says when it has been closed.
type served struct {
	net.Conn
	done chan struct{}
	once sync.Once
}

func (c *served) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.done) })
	return err
}

// Transport returns a transport to other front doors, for requests whose URL has the scheme http:
// its connections have their TLS already, with the certificates that are current then.
func (p *Peers) Transport() *http.Transport {
	return &http.Transport{DialContext: p.dial, DisableCompression: true, MaxIdleConnsPerHost: maxIdle, MaxResponseHeaderBytes: maxHeader,
		IdleConnTimeout: idleThere, ExpectContinueTimeout: time.Second}
}

func (p *Peers) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.Identity == nil {
		return nil, errAlone
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout())
	defer cancel()
	conn, err := (&tls.Dialer{Config: p.Identity.ClientConfig(service, requests)}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if conn.(*tls.Conn).ConnectionState().NegotiatedProtocol != requests {
		_ = conn.Close()
		return nil, errProtocol
	}
	return conn, nil
}
