// Package wire is the HTTP/2 client of loads. It has minimal overhead, because it often
// shares the machine with the measured server. A connection is used by one goroutine, which
// writes requests and reads frames; bodies are counted and passed on in the buffer of the
// frame.
//
// It announces the windows and frame sizes of Go's own client, so that servers behave as
// with usual clients. It never decodes a body. It serves the section "Limits".
package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// The values that Go's own client announces.
const (
	streamWindow     = 4 << 20
	connectionWindow = 1 << 30
	frameSize        = 1 << 20
)

const (
	// refill is how much of a stream's window may be used before a window update is sent.
	refill = streamWindow / 4
	// responseTimeout bounds the time of one response.
	responseTimeout = 2 * time.Minute
	// dialTimeout bounds the time until a connection is established.
	dialTimeout = 30 * time.Second
	// maxErrorText bounds the text of an error response, in bytes.
	maxErrorText = 300
)

// Request is one request. Accept and Type may be empty, for JSON.
type Request struct {
	Method, Path string
	Accept, Type string
	Body         []byte
}

// Conn is a connection to a server. Its methods except Close must be called by one
// goroutine.
type Conn struct {
	authority, base string
	shared          Header
	net             *tls.Conn
	out             *bufio.Writer
	frames          *http2.Framer
	header          bytes.Buffer
	encoder         *hpack.Encoder

	next    uint32
	leaving bool // the server takes no further requests
	streams map[uint32]*stream
	granted int64 // of the connection's window, not yet used by the server

	// Limits of the server.
	window, initialWindow int64
	maxFrame              int
}

// Dial connects to a server. The response of the server's TLS handshake must choose HTTP/2.
func Dial(ctx context.Context, to Server) (*Conn, error) {
	u, err := url.Parse(to.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: not an https URL", to.URL)
	}
	config := to.TLS.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: config}
	raw, err := dialer.DialContext(ctx, "tcp", address(u))
	if err != nil {
		return nil, err
	}
	connection := raw.(*tls.Conn)
	if got := connection.ConnectionState().NegotiatedProtocol; got != http2.NextProtoTLS {
		_ = connection.Close()
		return nil, fmt.Errorf("%s negotiates %q, not HTTP/2", to.URL, got)
	}
	c := &Conn{
		authority: u.Host, base: strings.TrimSuffix(u.Path, "/"), shared: to.Header, net: connection, out: bufio.NewWriterSize(connection, 64<<10),
		next: 1, streams: map[uint32]*stream{}, granted: connectionWindow,
		window: 65535, initialWindow: 65535, maxFrame: 16384,
	}
	c.frames = http2.NewFramer(c.out, bufio.NewReaderSize(connection, 64<<10))
	c.frames.SetReuseFrames()
	c.frames.SetMaxReadFrameSize(frameSize)
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.encoder = hpack.NewEncoder(&c.header)
	return c, c.greet()
}

func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func (c *Conn) greet() error {
	if _, err := c.out.WriteString(http2.ClientPreface); err != nil {
		return err
	}
	if err := c.frames.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		http2.Setting{ID: http2.SettingMaxFrameSize, Val: frameSize},
	); err != nil {
		return err
	}
	if err := c.frames.WriteWindowUpdate(0, connectionWindow); err != nil {
		return err
	}
	return c.out.Flush()
}

// Leaving reports whether the server takes no further requests on this connection.
func (c *Conn) Leaving() bool { return c.leaving }

// Close closes the connection and aborts pending reads.
func (c *Conn) Close() { _ = c.net.NetConn().Close() }

// Do sends a request and returns the size of the response body when it is complete. The
// sink is called with each piece of the body, which it must not keep, and with nil at the
// end; it may be nil. Every response other than 2xx is an error.
func (c *Conn) Do(r Request, sink func(piece []byte)) (size int64, err error) {
	s, err := c.begin(r, sink)
	for err == nil && !s.over {
		err = c.read()
	}
	if err == nil {
		err = s.failure()
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	return s.size, nil
}

// Open sends a request with a streamed response, and returns when the response has begun.
// Follow reads its body.
func (c *Conn) Open(r Request, sink func(piece []byte)) error {
	s, err := c.begin(r, sink)
	for err == nil && !s.over && (s.status == 0 || s.status >= 300) {
		err = c.read()
	}
	if err == nil {
		err = s.failure()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	return nil
}

// Follow reads the responses of the opened requests while more returns true. A sink is
// called with nil when its response ends.
func (c *Conn) Follow(more func() bool) error {
	if err := c.net.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	for more() {
		if len(c.streams) == 0 {
			return errors.New("the server has ended all responses")
		}
		if err := c.read(); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a request whose response must arrive within responseTimeout.
func (c *Conn) begin(r Request, sink func([]byte)) (*stream, error) {
	if err := c.net.SetReadDeadline(time.Now().Add(responseTimeout)); err != nil {
		return nil, err
	}
	return c.start(r, sink)
}

// start writes a request, and waits for window updates of the server if necessary.
func (c *Conn) start(r Request, sink func([]byte)) (*stream, error) {
	if c.leaving {
		return nil, ErrLeaving
	}
	fields, err := c.fields(r)
	if err != nil {
		return nil, err
	}
	s := &stream{id: c.next, sink: sink, window: c.initialWindow}
	c.next += 2
	c.streams[s.id] = s
	if err := c.frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: s.id, EndHeaders: true, EndStream: len(r.Body) == 0, BlockFragment: fields,
	}); err != nil {
		return nil, err
	}
	for rest := r.Body; len(rest) > 0; {
		n := int(min(int64(len(rest)), int64(c.maxFrame), c.window, s.window))
		if n <= 0 {
			if err := c.wait(s); err != nil {
				return nil, err
			}
			continue
		}
		if err := c.frames.WriteData(s.id, n == len(rest), rest[:n]); err != nil {
			return nil, err
		}
		c.window -= int64(n)
		s.window -= int64(n)
		rest = rest[n:]
	}
	return s, c.out.Flush()
}

// wait reads one frame, which may open a window.
func (c *Conn) wait(s *stream) error {
	if err := c.out.Flush(); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if s.over {
		return fmt.Errorf("got a response before the request was complete: %d %s", s.status, s.text)
	}
	return nil
}

// fields encodes the header of a request.
func (c *Conn) fields(r Request) ([]byte, error) {
	shared, err := c.shared()
	if err != nil {
		return nil, err
	}
	c.header.Reset()
	put := func(name, value string) {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) // writes to a buffer do not fail
	}
	put(":method", r.Method)
	put(":scheme", "https")
	put(":authority", c.authority)
	put(":path", c.base+r.Path)
	put("accept", orJSON(r.Accept))
	for _, f := range shared {
		put(f.Name, f.Value)
	}
	if len(r.Body) > 0 {
		put("content-type", orJSON(r.Type))
		put("content-length", strconv.Itoa(len(r.Body)))
	}
	return c.header.Bytes(), nil
}

func orJSON(mediaType string) string {
	if mediaType == "" {
		return "application/json"
	}
	return mediaType
}
