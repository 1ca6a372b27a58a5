// Package records makes an HTTP/2 server send a short response in one TLS record, with one
// system call. Go's server writes the header, the body and the end of a response one after
// the other, each as soon as nothing else waits.
//
// A connection holds frames back only between Ending, which the caller calls when the rest of
// a response is about to be written, and the end of the response, and no longer than patience.
// It does not parse requests, and never changes what is sent.
package records

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

const (
	// Short is the largest body, in bytes, whose frames are held back. It fits into one record.
	Short = 14 << 10
	// most bounds what a connection holds back, in bytes.
	most = 32 << 10
	// patience is how long frames are held back: the end of a response does not follow when its
	// client has reset it, or lets the server send no more.
	patience = time.Millisecond
	// mostWindow bounds the windows that a connection has not announced yet, in bytes. Go's
	// server announces 1 MiB, so that no client waits for the last of them.
	mostWindow = 64 << 10
)

// Configure makes the HTTP/2 connections of a server hold frames back. It must be called before
// the server serves, after its TLSNextProto is set.
func Configure(s *http.Server) error {
	h2 := &http2.Server{} //nolint:staticcheck // the server in net/http serves no other connection than tls.Conn
	if err := http2.ConfigureServer(s, h2); err != nil {
		return err
	}
	s.TLSNextProto[http2.NextProtoTLS] = func(s *http.Server, conn *tls.Conn, h http.Handler) {
		ctx := context.Background()
		if of, ok := h.(interface{ BaseContext() context.Context }); ok {
			ctx = of.BaseContext()
		}
		c := &Conn{Conn: conn}
		h2.ServeConn(c, &http2.ServeConnOpts{Context: context.WithValue(ctx, connKey{}, c), BaseConfig: s, Handler: h}) //nolint:staticcheck // as above
	}
	return nil
}

type connKey struct{}

// Of returns the connection of a request, by its context; nil if it has none, as with HTTP/1.1.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Conn is a connection to which the server writes frames. Its methods may be called concurrently.
type Conn struct {
	*tls.Conn

	// ending is the number of responses between Ending and their end.
	ending atomic.Int32

	mu      sync.Mutex
	frames  frames
	held    *[]byte // nil for nothing
	release *time.Timer
	waiting bool  // for release
	failed  error // of a write of release
}

// Ending announces that the server writes the rest of a response, which is short, without
// waiting for anything but the client. It does not block. On nil it does nothing.
func (c *Conn) Ending() {
	if c != nil {
		c.ending.Add(1)
	}
}

// Write writes frames, or holds them back until the next Write. An error of what was held back is
// returned by a later Write.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	c.frames.read(p)
	if c.frames.ended > 0 && c.ending.Add(-c.frames.ended) < 0 {
		c.ending.Store(0)
	}
	switch {
	case c.frames.windows() && c.frames.window <= mostWindow:
		c.hold(p)
		return len(p), nil
	case c.frames.ended == 0 && c.frames.response && c.ending.Load() > 0 && c.length()+len(p) <= most:
		c.hold(p)
		c.wait()
		return len(p), nil
	case c.held != nil && c.length()+len(p) <= most:
		c.hold(p)
		if err := c.flush(); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// length returns how much is held back, in bytes.
func (c *Conn) length() int {
	if c.held == nil {
		return 0
	}
	return len(*c.held)
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, most)
	return &b
}}

func (c *Conn) hold(p []byte) {
	if c.held == nil {
		c.held = buffers.Get().(*[]byte)
	}
	*c.held = append(*c.held, p...)
}

// flush writes what is held back.
func (c *Conn) flush() error {
	held := c.held
	c.frames.window = 0
	if held == nil {
		return nil
	}
	c.held = nil
	if c.waiting {
		c.waiting = false
		c.release.Stop()
	}
	_, err := c.Conn.Write(*held)
	*held = (*held)[:0]
	buffers.Put(held)
	return err
}

// wait lets release write what is held back after patience.
func (c *Conn) wait() {
	switch {
	case c.waiting:
		return
	case c.release == nil:
		c.release = time.AfterFunc(patience, c.expired)
	default:
		c.release.Reset(patience)
	}
	c.waiting = true
}

func (c *Conn) expired() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending.Store(0)
	c.waiting = false
	if err := c.flush(); err != nil {
		c.failed = err
	}
}
