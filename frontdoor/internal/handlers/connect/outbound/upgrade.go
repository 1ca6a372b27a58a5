package outbound

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// maxStatus is the highest HTTP status code (RFC 9110 section 15).
const maxStatus = 599

// Upgrade is one connection that is used for one request, which asks to upgrade it.
type Upgrade struct {
	conn   net.Conn
	used   atomic.Bool
	late   atomic.Bool // the header has taken too long
	status atomic.Int32
}

// patience is how long a backend may take to answer a request for an upgrade.
const patience = 30 * time.Second

// Dial connects as a transport would for a URL, whose host has a port. The connection
// ends with ctx, and when the header of its first response is too long or takes longer
// than patience. header returns the headers that are read in the place of those of that response,
// which is not an informational one.
func Dial(ctx context.Context, over *http.Transport, to *url.URL, header func(status int, from http.Header) http.Header) (*Upgrade, error) {
	return dial(ctx, over, to, upgrading{header, patience})
}

// upgrading is how the response to a request for an upgrade is read.
type upgrading struct {
	header   func(status int, from http.Header) http.Header
	patience time.Duration
}

func dial(ctx context.Context, over *http.Transport, to *url.URL, how upgrading) (*Upgrade, error) {
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
	limited := &headerConn{Conn: conn, upgrade: u, crossing: how.header}
	limited.late = time.AfterFunc(how.patience, func() {
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

// headerConn reads the header of one response within limits, with other headers in the place of
// its own, and everything after it as it is.
type headerConn struct {
	net.Conn
	upgrade  *Upgrade
	crossing func(status int, from http.Header) http.Header
	late     *time.Timer
	stop     func() bool
	over     bool   // the header is complete
	ready    []byte // has been read, and is returned next
}

var (
	errLongHeader = errors.New("the header of the response is too long")
	errLateHeader = errors.New("the backend did not respond in time")
)

func (c *headerConn) Read(b []byte) (int, error) {
	if !c.over {
		if err := c.readHeader(); err != nil {
			return 0, err
		}
		c.over = true
		c.late.Stop()
	}
	if len(c.ready) > 0 {
		n := copy(b, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// readHeader reads until the response has begun. Informational responses before it are left out.
func (c *headerConn) readHeader() error {
	limited := &io.LimitedReader{R: c.Conn, N: maxHeader}
	from := bufio.NewReader(limited)
	for {
		status, header, err := readResponse(from)
		switch {
		case c.upgrade.late.Load():
			return errLateHeader
		case err != nil && limited.N <= 0:
			return errLongHeader
		case err != nil:
			return err
		case status < http.StatusOK && status != http.StatusSwitchingProtocols:
			continue
		}
		c.upgrade.status.Store(int32(status)) //nolint:gosec // three digits
		c.ready = written(status, c.crossing(status, header))
		rest, err := from.Peek(from.Buffered())
		c.ready = append(c.ready, rest...)
		return err
	}
}

// readResponse reads a status line and the header after it.
func readResponse(from *bufio.Reader) (status int, header http.Header, err error) {
	lines := textproto.NewReader(from)
	line, err := lines.ReadLine()
	if err != nil {
		return 0, nil, err
	}
	protocol, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	status, err = strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(protocol, "HTTP/1.") || status < http.StatusContinue || status > maxStatus {
		return 0, nil, fmt.Errorf("malformed status line %.100q", line)
	}
	fields, err := lines.ReadMIMEHeader()
	return status, http.Header(fields), err
}

// written returns the header of a response as it is sent.
func written(status int, header http.Header) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = header.Write(&out) // to memory
	out.WriteString("\r\n")
	return out.Bytes()
}

func (c *headerConn) Close() error {
	c.stop()
	c.late.Stop()
	return c.Conn.Close()
}
