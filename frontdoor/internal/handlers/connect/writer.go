package connect

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/closeframe"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/crossing"
)

// recorder is implemented by a ResponseWriter that records the status of a
// response that is not written to it, but to its connection.
type recorder interface{ Record(status int) }

// writer is the ResponseWriter of one connection. The headers of the backend are kept apart from
// those of the front door until the response begins: a library that proxies clears its headers
// after each informational response.
type writer struct {
	http.ResponseWriter
	header   http.Header
	answers  crossing.Answers
	start    func(status int) // called when the response begins
	upgraded func() int       // the status of the response on a hijacked connection
	protocol string           // of the hijacked connection
	ended    func() string    // why the hijacked connection is closed; empty if not by the front door
	gone     func()           // called when the hijacked connection can no longer be read or written
	// within ends the hijacked connection when it ends; nil for a handler that does so itself.
	within   context.Context
	hijacked bool
	began    bool
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter. Only the headers that package crossing names cross.
// The time of a response is that of the front door, because workers take it for the API's.
// Informational responses do not cross.
func (w *writer) WriteHeader(status int) {
	if status < http.StatusOK || w.began {
		return
	}
	w.answers.Response(w.ResponseWriter.Header(), w.Header())
	status = crossing.Status(status)
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
	w.Flush() // from here on, nothing is compressed: it is the backend's content
}

// finish adds the trailers, once all has been written.
func (w *writer) finish() {
	if w.began && !w.hijacked {
		w.answers.Trailers(w.ResponseWriter.Header(), w.Header())
	}
}

// upgradeHeader returns the headers of the response on a hijacked connection.
func (w *writer) upgradeHeader(status int, from http.Header) http.Header {
	return w.answers.Upgrade(status, w.ResponseWriter.Header(), from)
}

func (w *writer) Write(b []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

func (w *writer) begin(status int) {
	w.began = true
	w.start(status)
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	status := http.StatusSwitchingProtocols
	if w.upgraded != nil && w.upgraded() != 0 {
		status = w.upgraded()
	}
	w.hijacked = true
	if to, ok := w.ResponseWriter.(recorder); ok {
		to.Record(status)
	}
	w.begin(status)
	if w.gone != nil {
		if conn, buffered, err = watching(conn, buffered, w.gone); err != nil {
			return nil, nil, err
		}
	}
	if w.ended != nil {
		conn = closeframe.Wrap(conn, w.protocol, w.ended)
	}
	if w.within != nil {
		context.AfterFunc(w.within, func() { _ = conn.Close() })
	}
	return conn, buffered, nil
}

// Unwrap supports http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// watched is the connection of a client. A library that reads from a backend discards what it can no
// longer write, so that a backend would go on for a client that has gone.
type watched struct {
	net.Conn
	gone func()
}

// watching returns a connection, and its buffers, that call gone when it can no longer be read or written.
func watching(conn net.Conn, buffered *bufio.ReadWriter, gone func()) (net.Conn, *bufio.ReadWriter, error) {
	c := watched{conn, gone}
	read, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err != nil {
		return nil, nil, err
	}
	from := bufio.NewReader(io.MultiReader(bytes.NewReader(read), c))
	if _, err := from.Peek(len(read)); err != nil { // libraries refuse what a client sends too early by what is buffered
		return nil, nil, err
	}
	return c, bufio.NewReadWriter(from, bufio.NewWriter(c)), nil
}

func (c watched) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.gone()
	}
	return n, err
}

func (c watched) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.gone()
	}
	return n, err
}
