package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// backend is a fake front door.
type backend struct {
	*httptest.Server
	ready   atomic.Bool
	paused  atomic.Bool   // it takes connections and says nothing
	arrived chan struct{} // receives a value for each request of /finish, which waits until finish is closed
	finish  chan struct{}
	address string
}

func newBackend(t *testing.T, name string) *backend {
	t.Helper()
	b := &backend{arrived: make(chan struct{}, 1), finish: make(chan struct{})}
	b.ready.Store(true)
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for b.paused.Load() {
			<-time.After(10 * time.Millisecond)
		}
		switch {
		case r.URL.Path == "/readyz" && !b.ready.Load():
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/wait":
			<-r.Context().Done()
		case r.URL.Path == "/finish":
			b.arrived <- struct{}{}
			<-b.finish
			_, _ = io.WriteString(w, name)
		default:
			_, _ = io.WriteString(w, name)
		}
	}))
	b.address = b.Listener.Addr().String()
	t.Cleanup(func() {
		b.paused.Store(false)
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// balanced starts a balancer for front doors, which may change.
type balanced struct {
	*balancer
	address string
	roots   *x509.CertPool

	mu    sync.Mutex
	names []string
}

func balance(t *testing.T, doors ...*backend) *balanced {
	t.Helper()
	b := &balanced{roots: x509.NewCertPool()}
	for _, d := range doors {
		b.roots.AddCert(d.Certificate())
		b.names = append(b.names, d.address)
	}
	b.balancer = newBalancer(slog.New(slog.DiscardHandler), func(context.Context) ([]string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.names, nil
	}, &tls.Config{RootCAs: b.roots, ServerName: "example.com"})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	go func() { _ = b.serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		b.close()
	})
	b.refresh(t.Context())
	return b
}

// ask sends a request over a new connection, and returns the name of the backend that
// responds.
func (b *balanced) ask(path string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: b.roots, ServerName: "example.com"}}}
	answer, err := client.Get("https://" + b.address + path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

func TestConnectionsAreSpread(t *testing.T) {
	b := balance(t, newBackend(t, "one"), newBackend(t, "two"))
	if b.ready() != 2 {
		t.Fatalf("%d are ready", b.ready())
	}
	for range 4 {
		go func() { _, _ = b.ask("/wait") }()
	}
	eventually(t, "four connections are two on each", func() bool { return b.connections(2) })
}

// connections reports whether each door has a number of connections.
func (b *balanced) connections(n int) bool {
	b.balancer.mu.Lock()
	defer b.balancer.mu.Unlock()
	for _, d := range b.doors {
		if len(d.conns) != n {
			return false
		}
	}
	return true
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, ticks := time.After(10*time.Second), time.NewTicker(10*time.Millisecond)
	defer ticks.Stop()
	for !holds() {
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatal("waited in vain: " + what)
		}
	}
}

func TestDoorsThatAreNotReadyAreAvoided(t *testing.T) {
	one, two := newBackend(t, "one"), newBackend(t, "two")
	b := balance(t, one, two)
	one.ready.Store(false)
	b.refresh(t.Context())
	for range 4 {
		if got, err := b.ask("/"); got != "two" {
			t.Errorf("%q has answered: %v", got, err)
		}
	}
	two.ready.Store(false)
	b.refresh(t.Context())
	if got, err := b.ask("/"); err != nil || b.ready() != 0 {
		t.Errorf("where none is ready, one that answers is better than none: %q, %v", got, err)
	}
}

func TestSilentDoorsLoseTheirConnections(t *testing.T) {
	one, two := newBackend(t, "one"), newBackend(t, "two")
	b := balance(t, one)
	b.roots.AddCert(two.Certificate())
	ended := make(chan error, 1)
	go func() {
		_, err := b.ask("/wait")
		ended <- err
	}()
	eventually(t, "the connection is there", func() bool { return b.connections(1) })
	one.paused.Store(true)
	b.mu.Lock()
	b.names = []string{two.address} // the other is gone from the name too
	b.mu.Unlock()
	b.refresh(t.Context())
	if got, err := b.ask("/"); got != "two" {
		t.Errorf("%q has answered: %v", got, err)
	}
	b.refresh(t.Context())
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the connection to the silent one has ended well")
		}
	case <-time.After(5 * time.Second):
		t.Error("the connection to the silent one goes on")
	}
	if len(b.doors) != 1 {
		t.Errorf("%d are known, want 1", len(b.doors))
	}
}

// TestStoppingDoorsFinishTheirRequests: a door that takes no more connections keeps those that it has,
// gets no others, and is forgotten after the last of them.
func TestStoppingDoorsFinishTheirRequests(t *testing.T) {
	one, two := newBackend(t, "one"), newBackend(t, "two")
	b := balance(t, one)
	b.roots.AddCert(two.Certificate())
	type answer struct {
		name string
		err  error
	}
	ended := make(chan answer, 1)
	go func() {
		name, err := b.ask("/finish")
		ended <- answer{name, err}
	}()
	<-one.arrived
	_ = one.Listener.Close()
	b.mu.Lock()
	b.names = []string{two.address}
	b.mu.Unlock()
	for range 2 * maxSilent {
		b.refresh(t.Context())
		if got, err := b.ask("/"); got != "two" {
			t.Errorf("%q has answered: %v", got, err)
		}
	}
	close(one.finish)
	if got := <-ended; got.name != "one" || got.err != nil {
		t.Errorf("the request in progress: %+v", got)
	}
	eventually(t, "the stopped one is forgotten", func() bool {
		b.refresh(t.Context())
		return len(b.known(nil)) == 1
	})
}

func TestADoorWithoutTrustIsNotUsed(t *testing.T) {
	good := newBackend(t, "good")
	b := balance(t, good)
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	b.mu.Lock()
	b.names = append(b.names, stranger.Addr().String())
	b.mu.Unlock()
	b.refresh(t.Context())
	first := b.next(nil)
	if b.ready() != 1 || first == nil || first.address != good.address || b.next([]*door{first}) != nil {
		t.Errorf("%d are ready, and %v is used", b.ready(), first)
	}
}

// TestTheLastResponseArrives: what a front door has sent before it closed its connection reaches a client
// that reads it later, even if the client has sent more to the closed connection meanwhile.
func TestTheLastResponseArrives(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	toDoor, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	end, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client, toClient := net.Pipe() // has no buffer: nothing is copied before the client reads
	b := newBalancer(slog.New(slog.DiscardHandler), nil, nil)
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		defer toClient.Close()
		b.join(&door{conns: map[net.Conn]struct{}{}}, toClient, toDoor)
	}()
	_ = client.SetDeadline(time.Now().Add(10 * time.Second))
	const response = "the last response"
	if _, err := io.WriteString(end, response[:1]); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1, len(response))
	if _, err := io.ReadFull(client, got); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(end, response[1:]); err != nil {
		t.Fatal(err)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for { // the first one is answered with a reset
			if _, err := io.WriteString(client, "more"); err != nil {
				return
			}
		}
	}()
	select { // the balancer closes the client's connection if it takes the reset for the end of all
	case <-sent:
	case <-time.After(100 * time.Millisecond):
	}
	rest, err := io.ReadAll(client)
	if got = append(got, rest...); string(got) != response {
		t.Errorf("%q, %v", got, err)
	}
	_ = client.Close()
	<-sent
	<-joined
}
