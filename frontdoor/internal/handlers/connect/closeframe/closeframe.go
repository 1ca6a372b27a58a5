// Package closeframe ends upgraded connections with a frame that says so, in WebSocket (RFC
// 6455) and SPDY/3.1: the client otherwise cannot distinguish the end from a lost connection.
// It follows where frames begin and end, so that it never writes into one, and reads nothing
// of their content. It serves "Endpoints" of the specification.
package closeframe

import (
	"bytes"
	"encoding/binary"
	"math"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// maxHead bounds the header of the response before the first frame.
	maxHead = 64 << 10
	// writeWithin bounds how long the end of a connection waits for its client.
	writeWithin = time.Second
	// goingAway is the code of an endpoint that goes away (RFC 6455 section 7.4.1), and maxReason is the
	// maximum length of the reason.
	goingAway = 1001
	maxReason = 123
)

// protocol is how frames are read and how the last one is written.
type protocol struct {
	// length returns how many bytes follow the header of a frame; ok is false while the
	// header is incomplete.
	length func(header []byte) (payload int64, ok bool)
	last   func(reason string) []byte
}

var protocols = map[string]protocol{
	"websocket": {webSocketLength, webSocketClose},
	"spdy/3.1":  {spdyLength, func(string) []byte { return goAway }},
}

// Wrap returns the connection to a client, to which the response to its request for an
// upgrade and then frames are written. Close sends the last frame if reason returns one.
// Connections of other protocols are returned as they are.
func Wrap(c net.Conn, upgrade string, reason func() string) net.Conn {
	p, known := protocols[strings.ToLower(upgrade)]
	if !known {
		return c
	}
	return &conn{Conn: c, protocol: p, reason: reason}
}

type conn struct {
	net.Conn
	protocol protocol
	reason   func() string

	mu      sync.Mutex
	head    []byte // of the response, while it is incomplete
	started bool   // the response is complete
	header  []byte // of the current frame, while it is incomplete
	left    int64  // of the current frame
	closed  bool
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.Conn.Write(b)
	c.follow(b[:n])
	return n, err
}

// follow notes what has been written.
func (c *conn) follow(b []byte) {
	if !c.started {
		if len(c.head) > maxHead {
			return
		}
		c.head = append(c.head, b...)
		_, frames, complete := bytes.Cut(c.head, []byte("\r\n\r\n"))
		if !complete {
			return
		}
		b, c.head, c.started = frames, nil, true
	}
	for len(b) > 0 {
		if c.left > 0 {
			n := min(c.left, int64(len(b)))
			c.left, b = c.left-n, b[n:]
			continue
		}
		c.header, b = append(c.header, b[0]), b[1:]
		if payload, ok := c.protocol.length(c.header); ok {
			c.left, c.header = payload, c.header[:0]
		}
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeWithin)) // also of a Write under way
	c.mu.Lock()
	defer c.mu.Unlock()
	if reason := c.reason(); reason != "" && !c.closed && c.started && c.left == 0 && len(c.header) == 0 {
		_, _ = c.Conn.Write(c.protocol.last(reason))
	}
	c.closed = true
	return c.Conn.Close()
}

// webSocketLength reads the header of a frame (RFC 6455 section 5.2).
func webSocketLength(h []byte) (payload int64, ok bool) {
	const short, long = 126, 127 // the length follows in 2 or 8 bytes
	if len(h) < 2 {
		return 0, false
	}
	size, length := 2, uint64(h[1]&0x7f)
	switch length {
	case short:
		size += 2
	case long:
		size += 8
	}
	if len(h) < size {
		return 0, false
	}
	switch length {
	case short:
		length = uint64(binary.BigEndian.Uint16(h[2:]))
	case long:
		length = binary.BigEndian.Uint64(h[2:])
	}
	const mask = 4
	payload = int64(min(length, math.MaxInt64-mask)) //nolint:gosec // bounded
	if masked := h[1]&0x80 != 0; masked {
		payload += mask
	}
	return payload, true
}

func webSocketClose(reason string) []byte {
	reason = reason[:min(len(reason), maxReason)]
	frame := []byte{0x88, byte(2 + len(reason)), goingAway >> 8, goingAway & 0xff}
	return append(frame, reason...)
}

// spdyLength reads the header of a frame, of which all have the same form.
func spdyLength(h []byte) (payload int64, ok bool) {
	const size = 8
	if len(h) < size {
		return 0, false
	}
	return int64(h[5])<<16 | int64(h[6])<<8 | int64(h[7]), true
}

// goAway is SPDY's frame GOAWAY for all streams, with status OK.
var goAway = []byte{0x80, 3, 0, 7, 0, 0, 0, 8, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}
