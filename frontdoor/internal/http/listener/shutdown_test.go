package listener

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// lateHandshakes holds each TLS handshake until it is released.
type lateHandshakes struct {
	begun, release chan struct{}
	once           sync.Once
}

func (l *lateHandshakes) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	l.once.Do(func() { close(l.begun) })
	<-l.release
	return nil, nil
}

// TestAHandshakeDuringTheStop: a client whose handshake ends after the stop has begun does not
// delay it, although it keeps its connection.
func TestAHandshakeDuringTheStop(t *testing.T) {
	late := &lateHandshakes{begun: make(chan struct{}), release: make(chan struct{})}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{GetConfigForClient: late.config}
	server.StartTLS()
	connected := make(chan error, 1)
	go func() {
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{
			RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com", NextProtos: []string{"h2"}})
		if err == nil {
			_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		}
		connected <- err
	}()
	<-late.begun
	server.Config.RegisterOnShutdown(sync.OnceFunc(func() { close(late.release) }))
	began := time.Now()
	Shutdown(t.Context(), server.Config, 30*time.Second)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
}

// TestAStopIsBounded: a request that does not end is cut off when the timeout has passed.
func TestAStopIsBounded(t *testing.T) {
	begun := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	ended := make(chan error, 1)
	go func() {
		response, err := server.Client().Get(server.URL)
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	<-begun
	Shutdown(context.WithoutCancel(t.Context()), server.Config, time.Millisecond)
	if err := <-ended; err == nil {
		t.Error("the request was answered")
	}
}
