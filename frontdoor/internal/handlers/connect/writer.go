package connect

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/closeframe"
)

// recorder is implemented by a ResponseWriter that records the status of a
// response that is not written to it, but to its connection.
type recorder interface{ Record(status int) }

// writer is the ResponseWriter of one connection.
type writer struct {
	http.ResponseWriter
	start    func(status int) // called when the response begins
	upgraded func() int       // the status of the response on a hijacked connection
	protocol string           // of the hijacked connection
	ended    func() string    // why the hijacked connection is closed; empty if not by the front door
	// within ends the hijacked connection when it ends; nil for a handler that does so itself.
	within   context.Context
	hijacked bool
	began    bool
}

// maxStatus is the highest HTTP status code (RFC 9110 section 15).
const maxStatus = 599

// WriteHeader implements http.ResponseWriter. All backends share one origin, so neither
// cookies nor permissions for other origins cross. The time of a response is that of the
// front door, because workers take it for the API's. Informational responses do not cross
// either.
func (w *writer) WriteHeader(status int) {
	if status < http.StatusOK || w.began {
		return
	}
	if status > maxStatus {
		status = http.StatusBadGateway
	}
	w.Header().Del("Set-Cookie")
	w.Header().Del("Date")
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control-") {
			w.Header().Del(name)
		}
	}
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
	w.Flush() // from here on, nothing is compressed: it is the backend's content
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
