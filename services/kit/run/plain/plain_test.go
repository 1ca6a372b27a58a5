package plain

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// served serves pages with shorter timeouts.
func served(t *testing.T, pages http.HandlerFunc) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", pages, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for what, timeout := range map[string]*time.Duration{"reads": &s.server.ReadTimeout, "writes": &s.server.WriteTimeout} {
		if *timeout <= 0 || *timeout > time.Minute {
			t.Fatalf("the timeout of %s is %v", what, *timeout)
		}
		*timeout = time.Second
	}
	s.Serve(func(err error) { t.Error(err) })
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Stop(ctx)
	})
	return s
}

func dialed(t *testing.T, s *Server, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestUnfinishedRequests: clients that announce bodies and do not send them leave, and others get
// their pages.
func TestUnfinishedRequests(t *testing.T) {
	s := served(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	var stalled []net.Conn
	for range maxConnections {
		stalled = append(stalled, dialed(t, s, "GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"))
	}
	answer, err := http.ReadResponse(bufio.NewReader(dialed(t, s, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); string(body) != "ok" {
		t.Errorf("got %q, %v", body, err)
	}
	for _, conn := range stalled {
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection is kept")
		}
	}
}

// TestUnreadResponses: a client that does not read its page leaves.
func TestUnreadResponses(t *testing.T) {
	ended := make(chan error, 1)
	s := served(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				ended <- err
				return
			}
		}
	})
	dialed(t, s, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the response does not end")
	}
}

// TestLongPages: a page may take longer than the timeouts if it extends that of its response, as
// those of net/http/pprof do.
func TestLongPages(t *testing.T) {
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Error("the request has ended")
		case <-time.After(2 * time.Second):
		}
		_, _ = io.WriteString(w, "profile")
	})
	answer, err := http.Get("http://" + s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); string(body) != "profile" {
		t.Errorf("got %q, %v", body, err)
	}
}
