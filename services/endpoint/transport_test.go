package endpoint_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/endpoint"
)

// TestBound: the bounds are those of a transport with and without a dialer of its own, which is kept.
func TestBound(t *testing.T) {
	dialed := false
	own := func(context.Context, string, string) (net.Conn, error) { dialed = true; return nil, net.ErrClosed }
	for what, transport := range map[string]*http.Transport{"a dialer": {DialContext: own}, "no dialer": {}} {
		if got := endpoint.Bound(transport); got.DialContext == nil || got.TLSHandshakeTimeout <= 0 || !got.ForceAttemptHTTP2 ||
			got.HTTP2.SendPingTimeout <= 0 || got.HTTP2.PingTimeout <= 0 {
			t.Errorf("%s: a bound is missing: %+v", what, got.HTTP2)
		}
	}
	if _, err := endpoint.Bound(&http.Transport{DialContext: own}).DialContext(t.Context(), "tcp", "127.0.0.1:1"); err == nil || !dialed {
		t.Errorf("the dialer is not kept: %v", err)
	}
}

// TestSilentConnections: a connection whose server neither answers nor closes it ends, and the next
// request has another one.
func TestSilentConnections(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	listener := &silencing{Listener: server.Listener, ended: make(chan struct{})}
	server.Listener, server.EnableHTTP2 = listener, true
	server.StartTLS()
	defer server.Close()
	defer close(listener.ended)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := endpoint.Bound(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	defer transport.CloseIdleConnections()
	transport.HTTP2.SendPingTimeout, transport.HTTP2.PingTimeout = 10*time.Millisecond, time.Second
	get := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // much longer than a probe, however slow the machine is
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		if response.ProtoMajor != 2 {
			t.Fatalf("the protocol is %s", response.Proto)
		}
		return response.Body.Close()
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	listener.silent.Store(1)
	before := time.Now()
	if err := get(); err == nil || time.Since(before) > 30*time.Second {
		t.Fatalf("the server is silent, and the request ended with %v after %s", err, time.Since(before))
	}
	if err := get(); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

// silencing is a listener whose first connections, as many as silent says, go silent: they read and
// write nothing until the end of the test.
type silencing struct {
	net.Listener
	accepted, silent atomic.Int32
	ended            chan struct{}
}

// Accept implements net.Listener.
func (s *silencing) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	return &silenced{c, s, s.accepted.Add(1)}, err
}

type silenced struct {
	net.Conn
	of     *silencing
	number int32
}

// Read implements net.Conn.
func (s *silenced) Read(into []byte) (int, error) {
	n, err := s.Conn.Read(into)
	if s.number <= s.of.silent.Load() {
		<-s.of.ended
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (s *silenced) Write(content []byte) (int, error) {
	if s.number <= s.of.silent.Load() {
		return len(content), nil
	}
	return s.Conn.Write(content)
}
