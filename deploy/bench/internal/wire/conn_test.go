package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve starts a server that serves /echo with the request's body, /large with many bytes
// and /stream with the received lines, and returns a connection to it.
func serve(t *testing.T, lines <-chan string) *Conn {
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
	c, err := Dial(ctx, server.URL, "secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
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
