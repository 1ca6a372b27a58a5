package wire

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// serve starts a server that serves /echo with the request's body, /large with many bytes
// and /stream with the received lines, and returns a connection to it.
func serve(t *testing.T, lines <-chan string) *Conn {
	t.Helper()
	_, c := served(t, lines)
	return c
}

func served(t *testing.T, lines <-chan string) (*httptest.Server, *Conn) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write(body)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("0123456789abcdef"), large/16))
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		for line := range lines {
			_, _ = io.WriteString(w, line+"\n")
			_ = http.NewResponseController(w).Flush()
		}
	})
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := Dial(ctx, Unverified(server.URL, "secret", "test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return server, c
}

// large is more than the stream windows that both sides announce.
const large = 3 * streamWindow

func TestBodiesOfAnySizePassBothWays(t *testing.T) {
	c := serve(t, nil)
	for range 3 {
		if size, err := c.Do(Request{Method: "GET", Path: "/large"}, nil); err != nil || size != large {
			t.Fatalf("got %d bytes and %v, want %d", size, err, large)
		}
		body := bytes.Repeat([]byte("body"), large/4)
		var echo bytes.Buffer
		size, err := c.Do(Request{Method: "POST", Path: "/echo", Body: body}, func(piece []byte) { echo.Write(piece) })
		if err != nil || size != int64(len(body)) || !bytes.Equal(echo.Bytes(), body) {
			t.Fatalf("got %d bytes and %v, want what was sent", size, err)
		}
	}
}

func TestErrorsTellTheirText(t *testing.T) {
	c := serve(t, nil)
	_, err := c.Do(Request{Method: "GET", Path: "/nothing"}, nil)
	if err == nil || !strings.Contains(err.Error(), "404 404 page not found") {
		t.Errorf("got %v", err)
	}
	if err := c.Open(Request{Method: "GET", Path: "/nothing"}, nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Do(Request{Method: "POST", Path: "/echo", Body: []byte("x")}, nil); err != nil {
		t.Errorf("the connection is unusable: %v", err)
	}
}

func TestManyAnswersGoOnAtATime(t *testing.T) {
	lines := make(chan string)
	c := serve(t, lines)
	const streams = 5
	got, ended := 0, 0
	for range streams {
		if err := c.Open(Request{Method: "GET", Path: "/stream"}, func(piece []byte) {
			got += bytes.Count(piece, []byte("\n"))
			if piece == nil {
				ended++
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	const sent = 20
	go func() {
		for range sent {
			lines <- "line"
		}
	}()
	if err := c.Follow(func() bool { return got < sent }); err != nil {
		t.Fatal(err)
	}
	close(lines)
	if err := c.Follow(func() bool { return ended < streams }); err != nil {
		t.Fatal(err)
	}
	if err := c.Follow(func() bool { return true }); err == nil {
		t.Error("Follow returned no error after the end of all responses")
	}
}

// TestServerThatStops: a response in progress goes on, and no other request is sent.
func TestServerThatStops(t *testing.T) {
	lines := make(chan string)
	server, c := served(t, lines)
	text := ""
	ended := false
	if err := c.Open(Request{Method: "GET", Path: "/stream"}, func(piece []byte) { text += string(piece); ended = piece == nil }); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error)
	go func() { stopped <- server.Config.Shutdown(t.Context()) }()
	if err := c.Follow(func() bool { return !c.Leaving() }); err != nil {
		t.Fatal(err)
	}
	go func() { lines <- "line"; close(lines) }()
	if err := c.Follow(func() bool { return !ended }); err != nil || text != "line\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := c.Do(Request{Method: "GET", Path: "/large"}, nil); !errors.Is(err, ErrLeaving) {
		t.Errorf("another request: %v", err)
	}
	c.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestFromConfig: a connection has the path, the authority and the credentials of a kubeconfig.
func TestFromConfig(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.UserAgent()+" "+r.Header.Get("Impersonate-User"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL + "/base/", BearerToken: "secret", UserAgent: "agent", Impersonate: rest.ImpersonationConfig{UserName: "jane"}, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	to, err := FromConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got strings.Builder
	if _, err := c.Do(Request{Method: "GET", Path: "/api"}, func(piece []byte) { got.Write(piece) }); err != nil || got.String() != "/base/api Bearer secret agent jane" {
		t.Errorf("%q %v", got.String(), err)
	}
	config.CAData = nil
	if to, err = FromConfig(config); err != nil {
		t.Fatal(err)
	}
	if c, err := Dial(t.Context(), to); err == nil {
		c.Close()
		t.Error("a server of an unknown authority is accepted")
	}
	config.Proxy = http.ProxyFromEnvironment
	if _, err := FromConfig(config); err == nil {
		t.Error("a proxy is accepted")
	}
}
