package records

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// The limits of the servers of limited.
	maxStreams, maxHeader = 4, 8 << 10
	soon                  = 300 * time.Millisecond
	// enough is how long a test waits.
	enough = time.Minute
	// tooMany is the number of frames after which a server must have ended a flood.
	tooMany = 200_000
)

// pipes is a listener of connections without buffers: the server cannot write what the client does
// not read.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	end   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.end) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// dial returns a new connection.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// limited starts a server with limits, with or without records.
func limited(t *testing.T, change func(*http.Server), plain bool, h http.HandlerFunc) *pipes {
	t.Helper()
	model := httptest.NewUnstartedServer(h)
	model.EnableHTTP2 = true
	model.StartTLS()
	certificates := model.TLS.Certificates
	model.Close()
	s := &http.Server{Handler: h, ReadHeaderTimeout: enough, MaxHeaderBytes: maxHeader, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: enough}}
	if change != nil {
		change(s)
	}
	if !plain {
		if err := Configure(s); err != nil {
			t.Fatal(err)
		}
	}
	l := &pipes{conns: make(chan net.Conn), end: make(chan struct{})}
	var served sync.WaitGroup
	served.Go(func() {
		_ = s.Serve(tls.NewListener(l, &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true}))
	})
	t.Cleanup(func() {
		_ = s.Close()
		served.Wait()
	})
	return l
}

// raw is a connection of a client, frame by frame.
type raw struct {
	*testing.T
	conn   *tls.Conn
	framer *http2.Framer
	head   bytes.Buffer
	encode *hpack.Encoder
	next   uint32
	silent bool // answers no pings
}

// connect opens a connection whose streams have a window.
func connect(t *testing.T, to *pipes, window uint32) *raw {
	t.Helper()
	conn := tls.Client(to.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}) //nolint:gosec // a certificate for tests
	t.Cleanup(func() { _ = conn.Close() })
	c := &raw{T: t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.encode = hpack.NewEncoder(&c.head)
	_ = conn.SetDeadline(time.Now().Add(enough))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	return c
}

// get sends a GET on a new stream, with further fields.
func (c *raw) get(path string, fields ...hpack.HeaderField) error {
	c.head.Reset()
	for _, f := range append([]hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: "localhost"}, {Name: ":path", Value: path}}, fields...) {
		_ = c.encode.WriteField(f)
	}
	block, id := c.head.Bytes(), c.next
	c.next += 2
	first := block[:min(len(block), 16<<10)]
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: true, EndHeaders: len(first) == len(block)})
	for block = block[len(first):]; err == nil && len(block) > 0; {
		part := block[:min(len(block), 16<<10)]
		block = block[len(part):]
		err = c.framer.WriteContinuation(id, len(block) == 0, part)
	}
	return err
}

// read reads frames until one is the end of something, which it returns. Pings are answered, and the
// bodies of responses added to body.
func (c *raw) read(body *strings.Builder) string {
	reason := "closed"
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return "nothing"
			}
			return reason
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if status := f.PseudoValue("status"); f.StreamEnded() || body == nil {
				return fmt.Sprintf("%d: %s", f.StreamID, status)
			}
		case *http2.DataFrame:
			if body != nil {
				_, _ = body.Write(f.Data())
			}
			if f.StreamEnded() {
				return fmt.Sprintf("%d ended", f.StreamID)
			}
		case *http2.RSTStreamFrame:
			return fmt.Sprintf("%d: %v", f.StreamID, f.ErrCode)
		case *http2.GoAwayFrame:
			reason = fmt.Sprintf("closed: %v", f.ErrCode)
		case *http2.PingFrame:
			if f.IsAck() {
				return "ping"
			}
			if !c.silent {
				_ = c.framer.WritePing(true, f.Data)
			}
		}
	}
}

// flood writes frames until the server has closed the connection, and reads.
func (c *raw) flood(write func() error) string {
	ended := make(chan string, 1)
	go func() { ended <- c.until(write) }()
	reason := c.read(nil)
	_ = c.conn.NetConn().Close()
	if end := <-ended; end != "ended" {
		return end
	}
	return reason
}

// until writes frames until the server has closed the connection, and reads nothing.
func (c *raw) until(write func() error) string {
	for range tooMany {
		if err := write(); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return "nothing"
			}
			return "ended"
		}
	}
	return "endless"
}

// TestLimits attacks the server with records and that of net/http. Both have the same limits.
func TestLimits(t *testing.T) {
	long := bytes.Repeat([]byte{0x40, 1, 'x', 1, 'y'}, 200)
	block := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, x := range map[string]struct {
		change func(*http.Server)
		window uint32
		serve  http.HandlerFunc
		attack func(*raw) string
		want   string
	}{
		"a header over the limit": {attack: func(c *raw) string {
			_ = c.get("/", slices.Repeat([]hpack.HeaderField{{Name: "x", Value: strings.Repeat("y", 1<<10), Sensitive: true}}, maxHeader>>10)...)
			return c.read(nil)
		}, want: "1: 431"},
		"a field over the limit": {attack: func(c *raw) string {
			_ = c.get("/", hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 2*maxHeader)})
			return c.read(nil)
		}, want: "closed: COMPRESSION_ERROR"},
		"a header without an end": {attack: func(c *raw) string {
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: long})
			return c.flood(func() error { return c.framer.WriteContinuation(1, false, long) })
		}, want: "closed: PROTOCOL_ERROR"},
		"a header that is not continued": {change: func(s *http.Server) { s.HTTP2.SendPingTimeout, s.HTTP2.PingTimeout = soon, soon }, attack: func(c *raw) string {
			c.silent = true
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: long})
			return c.read(nil)
		}, want: "closed"},
		"more streams than announced": {serve: block, attack: func(c *raw) string {
			for range maxStreams + 1 {
				_ = c.get("/")
			}
			return c.read(nil)
		}, want: "9: REFUSED_STREAM"},
		"streams that are reset": {serve: func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			<-time.After(soon) // a request that does not end at once
		}, attack: func(c *raw) string {
			return c.flood(func() error { return errors.Join(c.get("/"), c.framer.WriteRSTStream(c.next-2, http2.ErrCodeCancel)) })
		}, want: "closed: ENHANCE_YOUR_CALM"},
		"pings without reading": {attack: func(c *raw) string {
			return c.until(func() error { return c.framer.WritePing(false, [8]byte{}) })
		}, want: "ended"},
		"settings of all kinds": {attack: func(c *raw) string {
			var settings []http2.Setting
			for i := range 200 {
				settings = append(settings, http2.Setting{ID: http2.SettingID(i), Val: 1})
			}
			_ = c.framer.WriteSettings(settings...)
			return c.read(nil)
		}, want: "closed: PROTOCOL_ERROR"},
		"a frame over the limit": {attack: func(c *raw) string {
			_, _ = c.conn.Write([]byte{0xff, 0xff, 0xff, typeHeaders, 0, 0, 0, 0, 1})
			return c.read(nil)
		}, want: "closed: FRAME_SIZE_ERROR"},
		"a window over the limit": {attack: func(c *raw) string {
			_ = errors.Join(c.framer.WriteWindowUpdate(0, 1<<31-1), c.framer.WriteWindowUpdate(0, 1<<31-1))
			return c.read(nil)
		}, want: "closed: FLOW_CONTROL_ERROR"},
		"no request": {change: func(s *http.Server) { s.IdleTimeout = soon }, attack: func(c *raw) string { return c.read(nil) }, want: "closed: NO_ERROR"},
		"no answer to pings": {change: func(s *http.Server) { s.HTTP2.SendPingTimeout, s.HTTP2.PingTimeout = soon, soon }, serve: block, attack: func(c *raw) string {
			c.silent = true
			_ = c.get("/")
			return c.read(nil)
		}, want: "closed"},
		"a response that is not read": {change: func(s *http.Server) { s.HTTP2.WriteByteTimeout = soon }, window: 1 << 30,
			serve: func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = w.Write(long)
				}
			}, attack: func(c *raw) string {
				_ = errors.Join(c.framer.WriteWindowUpdate(0, 1<<30), c.get("/"))
				return c.until(func() error { // until the server reads no more
					<-time.After(time.Millisecond)
					return c.framer.WriteWindowUpdate(0, 1)
				})
			}, want: "ended"},
		"a response that is not read, a byte at a time": {window: 0,
			serve: func(w http.ResponseWriter, r *http.Request) { answer(w, r, long) }, attack: func(c *raw) string {
				_ = c.get("/")
				var body strings.Builder
				event := "ping"
				for event == "ping" {
					_ = errors.Join(c.framer.WriteWindowUpdate(1, 1), c.framer.WritePing(false, [8]byte{}))
					event = c.read(&body)
				}
				return fmt.Sprint(event, " ", body.String() == string(long))
			}, want: "1 ended true"},
	} {
		for kind, plain := range map[string]bool{"net/http": true, "records": false} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				var running, most atomic.Int64
				ended := make(chan struct{}, 1)
				server := limited(t, x.change, plain, func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						running.Add(-1)
						select {
						case ended <- struct{}{}:
						default:
						}
					}()
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					if x.serve != nil {
						x.serve(w, r)
					}
				})
				c := connect(t, server, x.window)
				if got := x.attack(c); got != x.want {
					t.Errorf("%s, want %s", got, x.want)
				}
				_ = c.conn.NetConn().Close()
				if most.Load() > maxStreams {
					t.Errorf("%d requests of a connection at the same time", most.Load())
				}
				for end := time.After(enough); running.Load() > 0; {
					select {
					case <-ended:
					case <-end:
						t.Fatalf("%d requests are still served", running.Load())
					}
				}
			})
		}
	}
}
