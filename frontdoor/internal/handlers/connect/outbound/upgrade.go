package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// Upgrade is one connection that is used for one request, which asks to upgrade it.
type Upgrade struct {
	conn   net.Conn
	used   atomic.Bool
	late   atomic.Bool // the header has taken too long
	status atomic.Int32
}

// Dial connects as a transport would for a URL, whose host has a port. The connection
// ends with ctx, and when the header of its first response is too long or takes longer
// than patience.
func Dial(ctx context.Context, over *http.Transport, to *url.URL, patience time.Duration) (*Upgrade, error) {
	conn, err := over.DialContext(ctx, "tcp", to.Host)
	if err != nil {
		return nil, err
	}
	if to.Scheme == "https" {
		if conn, err = secure(ctx, conn, over, to.Hostname()); err != nil {
			return nil, err
		}
	}
	u := &Upgrade{}
	limited := &headerConn{Conn: conn, upgrade: u}
	limited.late = time.AfterFunc(patience, func() {
		u.late.Store(true)
		_ = conn.Close()
	})
	limited.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	u.conn = limited
	return u, nil
}

// Close closes the connection.
func (u *Upgrade) Close() { _ = u.conn.Close() }

// Status returns the status code that the backend answered the request for an upgrade
// with; 0 while there is none.
func (u *Upgrade) Status() int { return int(u.status.Load()) }

// Transport returns a transport that has this connection only. It has its TLS already,
// so that the URLs of the transport have the scheme http.
func (u *Upgrade) Transport() *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		if u.used.Swap(true) {
			return nil, errUsed
		}
		return u.conn, nil
	}}
}

var errUsed = errors.New("the connection has been used for another request")

// secure begins TLS as over would.
func secure(ctx context.Context, conn net.Conn, over *http.Transport, host string) (net.Conn, error) {
	config := over.TLSClientConfig.Clone()
	config.ServerName, config.NextProtos = cmp.Or(config.ServerName, host), []string{"http/1.1"}
	ctx, cancel := context.WithTimeout(ctx, over.TLSHandshakeTimeout)
	defer cancel()
	encrypted := tls.Client(conn, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return encrypted, nil
}

// headerConn reads the header of one response within limits, and everything after it
// without.
type headerConn struct {
	net.Conn
	upgrade *Upgrade
	late    *time.Timer
	stop    func() bool
	header  []byte
	over    bool // the header is complete
}

var (
	errLongHeader = errors.New("the header of the response is too long")
	errLateHeader = errors.New("the backend did not respond in time")
)

func (c *headerConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.over {
		return n, err
	}
	if c.upgrade.late.Load() {
		return 0, errLateHeader
	}
	from := max(0, len(c.header)-len("\r\n\r\n"))
	c.header = append(c.header, b[:n]...)
	if end := headerEnd(c.header[from:]); end < 0 {
		if len(c.header) > maxHeader {
			return 0, errLongHeader
		}
		return n, err
	}
	c.over = true
	c.late.Stop()
	c.upgrade.status.Store(statusOf(c.header))
	c.header = nil
	return n, err
}

// headerEnd returns where a header ends; -1 when the end is not there.
func headerEnd(b []byte) int {
	for _, end := range []string{"\n\r\n", "\n\n"} {
		if i := bytes.Index(b, []byte(end)); i >= 0 {
			return i
		}
	}
	return -1
}

// statusOf returns the status code of a status line; 0 when it has none.
func statusOf(header []byte) int32 {
	line, _, _ := bytes.Cut(header, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return 0
	}
	code, err := strconv.ParseUint(string(fields[1]), 10, 16)
	if err != nil {
		return 0
	}
	return int32(code)
}

func (c *headerConn) Close() error {
	c.stop()
	c.late.Stop()
	return c.Conn.Close()
}
