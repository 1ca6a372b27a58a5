package rawhttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// HTTP2 is one HTTP/2 connection, frame by frame.
type HTTP2 struct {
	conn   *tls.Conn
	framer *http2.Framer
	mu     sync.Mutex // guards all fields below and writes
	head   bytes.Buffer
	encode *hpack.Encoder
	next   uint32

	done   chan struct{} // closed when the server has closed
	goAway http2.ErrCode
}

// HTTP2 opens a connection whose streams have a receive window of this many bytes: with 0,
// the server can send headers but no bodies.
func (s Server) HTTP2(ctx context.Context, window uint32) (*HTTP2, error) {
	conn, err := s.Dial(ctx, "h2")
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	c := &HTTP2{conn: conn, framer: http2.NewFramer(conn, conn), next: 1, done: make(chan struct{})}
	c.encode = hpack.NewEncoder(&c.head)
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		return nil, err
	}
	go c.read()
	return c, nil
}

// read acknowledges settings and pings, and records the end of streams and of the
// connection.
func (c *HTTP2) read() {
	defer close(c.done)
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		c.mu.Lock()
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = c.framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = c.framer.WritePing(true, f.Data)
			}
		case *http2.GoAwayFrame:
			c.goAway = f.ErrCode
		}
		c.mu.Unlock()
	}
}

// Get opens a stream with a GET and returns its ID.
func (c *HTTP2) Get(path, token string) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.Reset()
	fields := []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: "localhost"}, {Name: ":path", Value: path}}
	if token != "" {
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
	}
	for _, field := range fields {
		if err := c.encode.WriteField(field); err != nil {
			return 0, err
		}
	}
	id := c.next
	c.next += 2
	return id, c.write(func() error {
		return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.head.Bytes(), EndStream: true, EndHeaders: true})
	})
}

// Send writes frames that need not make sense.
func (c *HTTP2) Send(frames func(*http2.Framer) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.framer.AllowIllegalWrites = true
	return c.write(func() error { return frames(c.framer) })
}

// Open opens a stream with the headers of a POST, whose body does not follow, and returns its ID.
func (c *HTTP2) Open(path string) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next
	c.next += 2
	c.head.Reset()
	for _, field := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: "localhost"}, {Name: ":path", Value: path}} {
		if err := c.encode.WriteField(field); err != nil {
			return 0, err
		}
	}
	return id, c.write(func() error {
		return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.head.Bytes(), EndHeaders: true})
	})
}

// Cancel resets a stream.
func (c *HTTP2) Cancel(stream uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(func() error { return c.framer.WriteRSTStream(stream, http2.ErrCodeCancel) })
}

// Continue sends endless headers in CONTINUATION frames, until the server closes the
// connection or n frames are sent. It returns the number of sent frames.
func (c *HTTP2) Continue(n int) (sent int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	junk := bytes.Repeat([]byte{0x40, 1, 'x', 1, 'y'}, 200) // literal fields x: y
	if err := c.write(func() error {
		return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: junk})
	}); err != nil {
		return 0, err
	}
	for sent < n {
		if err := c.write(func() error { return c.framer.WriteContinuation(c.next, false, junk) }); err != nil {
			return sent, nil
		}
		sent++
	}
	return sent, nil
}

// write writes a frame with a deadline, for servers that no longer read.
func (c *HTTP2) write(frame func() error) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	return frame()
}

// Closed waits until the server has closed the connection and returns its reason.
func (c *HTTP2) Closed(ctx context.Context) (http2.ErrCode, error) {
	select {
	case <-c.done:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.goAway, nil
	case <-ctx.Done():
		return 0, errors.New("the server has not closed the connection")
	}
}

// Close closes the connection.
func (c *HTTP2) Close() error { return c.conn.Close() }
