package pace_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/portico-platform/portico/frontdoor/internal/http/pace"
)

const (
	grace = 600 * time.Millisecond
	stall = time.Second
	// enough is far more than the buffers between a server and a slow client can hold.
	enough = 20 * time.Second
)

// serve starts a TLS server for HTTP/1.1 and HTTP/2 whose exchanges are paced.
func serve(t *testing.T, handle func(x *pace.Exchange, r *http.Request), patience ...time.Duration) *httptest.Server {
	t.Helper()
	stall := append(patience, stall)[0]
	p := pace.New(pace.Config{Grace: grace, Rate: 1 << 10, Stall: stall})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Run(ctx)
	}()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &pace.Exchange{}
		p.Begin(x, w, r)
		handle(x, r)
		x.End(r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		<-ended
	})
	return server
}

// dial opens a connection of one HTTP version.
func dial(t *testing.T, server *httptest.Server, protocol string) net.Conn {
	t.Helper()
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{protocol}
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// stream opens one HTTP/2 stream, with or without a body to follow. The client never
// grants flow control for the response.
func stream(t *testing.T, conn net.Conn, method string, more bool) *http2.Framer {
	t.Helper()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "x"}, {Name: ":path", Value: "/"}} {
		_ = encoder.WriteField(f)
	}
	if err := errors.Join(framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: !more})); err != nil {
		t.Fatal(err)
	}
	if more {
		if err := framer.WriteData(1, false, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	return framer
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(enough):
		t.Fatalf("%s: nothing happened", what)
		panic("unreachable")
	}
}

// begin sends one byte of a body on a new connection.
func begin(t *testing.T, server *httptest.Server, protocol string) net.Conn {
	conn := dial(t, server, protocol)
	if protocol == "h2" {
		stream(t, conn, "POST", true)
	} else if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestSlowBodyEnds(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			ended := make(chan error, 1)
			server := serve(t, func(_ *pace.Exchange, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				ended <- err
			})
			begin(t, server, protocol)
			if err := await(t, "the body", ended); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading the body: %v", err)
			}
		})
	}
}

// TestBodyWithin: a body that keeps arriving still ends at its deadline.
func TestBodyWithin(t *testing.T) {
	ended := make(chan error, 1)
	server := serve(t, func(x *pace.Exchange, r *http.Request) {
		x.Within(stall)
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	})
	go func() {
		if response, err := server.Client().Post(server.URL, "", &steady{pieces: 1000, pause: grace / 6}); err == nil {
			_ = response.Body.Close()
		}
	}()
	if err := await(t, "the body", ended); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading the body: %v", err)
	}
}

// TestSteadyBody: a slow but steady body is accepted.
func TestSteadyBody(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		server := serve(t, func(x *pace.Exchange, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(x, r.ProtoMajor, n, err)
		})
		client := server.Client()
		client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		if !h2 {
			client.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
		response, err := client.Post(server.URL, "", &steady{pieces: 20, pause: grace / 6})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if want := fmt.Sprint(response.ProtoMajor, 20*2048, nil); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

// steady is a body that arrives in pieces at intervals.
type steady struct {
	pieces int
	pause  time.Duration
}

func (s *steady) Read(b []byte) (int, error) {
	if s.pieces--; s.pieces < 0 {
		return 0, io.EOF
	}
	<-time.After(s.pause)
	return copy(b, make([]byte, 2048)), nil
}

// holder counts calls.
type holder struct {
	calls atomic.Int64
	keep  bool
}

func (h *holder) Stalled(int64) bool {
	h.calls.Add(1)
	return h.keep
}

// TestSlowReader ends a response that its client does not read: at once if Stalled returns
// false, else after Stall. It tests responses in one write, in many, and flushed like a
// watch.
func TestSlowReader(t *testing.T) {
	for _, c := range []struct {
		protocol string
		keep     bool
		flush    bool
	}{{"http/1.1", true, false}, {"http/1.1", false, false}, {"http/1.1", true, true}, {"h2", true, false}, {"h2", false, false}, {"h2", true, true}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			h, ended := &holder{keep: c.keep}, make(chan error, 1)
			server := serve(t, func(x *pace.Exchange, _ *http.Request) {
				x.Tell(h)
				for {
					_, err := x.Write(make([]byte, 250<<10))
					if err == nil && c.flush {
						err = http.NewResponseController(x).Flush()
					}
					if err != nil {
						ended <- err
						return
					}
				}
			})
			conn := dial(t, server, c.protocol)
			if c.protocol == "h2" {
				stream(t, conn, "GET", false)
			} else if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			await(t, "the answer", ended)
			if n := h.calls.Load(); n != 1 {
				t.Errorf("the holder was told %d times", n)
			}
		})
	}
}

// TestGoneReader: the response to a client that has disconnected ends long before
// Stall, although what was written cannot be delivered.
func TestGoneReader(t *testing.T) {
	h, ended := &holder{keep: true}, make(chan error, 1)
	server := serve(t, func(x *pace.Exchange, _ *http.Request) {
		x.Tell(h)
		for {
			if _, err := x.Write(make([]byte, 250<<10)); err != nil {
				ended <- err
				return
			}
		}
	}, time.Hour)
	conn := dial(t, server, "http/1.1")
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for h.calls.Load() == 0 { // until the response is blocked
		runtime.Gosched()
	}
	if err := conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	await(t, "the answer", ended)
}

// TestOtherStreamsGoOn: ending one HTTP/2 stream does not affect the others.
func TestOtherStreamsGoOn(t *testing.T) {
	ended := make(chan error, 1)
	server := serve(t, func(x *pace.Exchange, r *http.Request) {
		if r.Method == http.MethodPost {
			_, err := io.ReadAll(r.Body)
			ended <- err
			return
		}
		fmt.Fprint(x, "well")
	})
	slow, feed := io.Pipe()
	defer feed.Close()
	request, err := http.NewRequest(http.MethodPost, server.URL, slow)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if response, err := server.Client().Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	await(t, "the slow body", ended)
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); err != nil || string(got) != "well" || response.ProtoMajor != 2 {
		t.Errorf("got %s %v over %s", got, err, response.Proto)
	}
}

// TestLaterRequests sends requests over one HTTP/1.1 connection at long intervals: a
// deadline of one must not affect the next.
func TestLaterRequests(t *testing.T) {
	server := serve(t, func(x *pace.Exchange, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(x, "well")
		if r.URL.Path == "/watch" {
			_ = x.FlushError()
			<-time.After(stall + grace + time.Second)
			if err := r.Context().Err(); err != nil {
				t.Errorf("the quiet watch was ended: %v", err)
			}
			fmt.Fprint(x, "well")
		}
	})
	server.Client().Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
	server.Client().Transport.(*http.Transport).ForceAttemptHTTP2 = false
	for _, path := range []string{"/", "/watch", "/"} {
		response, err := server.Client().Post(server.URL+path, "", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.HasPrefix(string(got), "well") {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
}

// TestUnreadBody: a handler that ignores the body can respond although the client never
// sends it.
func TestUnreadBody(t *testing.T) {
	server := serve(t, func(x *pace.Exchange, _ *http.Request) { x.WriteHeader(http.StatusForbidden) })
	conn := begin(t, server, "http/1.1")
	_ = conn.SetReadDeadline(time.Now().Add(enough))
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 403") {
		t.Errorf("got %q, %v", answer, err)
	}
}

// TestHijacked: a hijacked connection has no deadlines.
func TestHijacked(t *testing.T) {
	server := serve(t, func(x *pace.Exchange, _ *http.Request) {
		conn, _, err := http.NewResponseController(x).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			<-time.After(2 * stall)
			_, _ = io.WriteString(conn, "late")
			_ = conn.Close()
		}()
	})
	conn := dial(t, server, "http/1.1")
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(enough))
	if got, err := io.ReadAll(conn); err != nil || string(got) != "late" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestNothingIsAllocated for transfers that do not block.
func TestNothingIsAllocated(t *testing.T) {
	p := pace.New(pace.Config{Grace: grace, Rate: 1 << 10, Stall: stall})
	var w http.ResponseWriter = discard{}
	r, x, b := httptest.NewRequest(http.MethodGet, "/", nil), &pace.Exchange{}, make([]byte, 100<<10)
	if n := testing.AllocsPerRun(1000, func() {
		p.Begin(x, w, r)
		_, _ = x.Write(b)
		_ = x.FlushError()
		x.End(r)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// discard is a ResponseWriter that drops everything.
type discard struct{ http.ResponseWriter }

func (discard) Write(b []byte) (int, error)        { return len(b), nil }
func (discard) FlushError() error                  { return nil }
func (discard) SetWriteDeadline(_ time.Time) error { return nil }

// TestNoBodyNoDeadline: a request without a body sets no deadline, which on HTTP/2
// would cost a message between goroutines.
func TestNoBodyNoDeadline(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			deadlines := make(chan struct{}, 1)
			p := pace.New(pace.Config{Grace: grace, Rate: 1 << 10, Stall: stall})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				x := &pace.Exchange{}
				p.Begin(x, deadlineSpy{w, deadlines}, r)
				_, _ = x.Write([]byte("hello"))
				x.End(r)
			}))
			server.EnableHTTP2 = protocol == "h2"
			server.StartTLS()
			defer server.Close()
			response, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if major := map[string]int{"http/1.1": 1, "h2": 2}[protocol]; response.ProtoMajor != major {
				t.Fatalf("answered with %s", response.Proto)
			}
			select {
			case <-deadlines:
				t.Error("a deadline for the body was set")
			default:
			}
		})
	}
}

// deadlineSpy is a ResponseWriter that signals read deadlines.
type deadlineSpy struct {
	http.ResponseWriter
	set chan struct{}
}

func (s deadlineSpy) SetReadDeadline(time.Time) error {
	s.set <- struct{}{}
	return nil
}
