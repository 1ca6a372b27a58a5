package connect

import (
	"bufio"
	"net"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
)

// recorder is implemented by a ResponseWriter that is to be told the status of a
// response that is not written to it, but to its connection.
type recorder interface{ Record(status int) }

// writer is the ResponseWriter of one connection.
type writer struct {
	http.ResponseWriter
	request  *request.Request
	upgraded func() int // the status of the response on a hijacked connection
	hijacked bool
	began    bool
}

// WriteHeader implements http.ResponseWriter. All backends share one origin, so cookies
// do not cross. Informational responses do not cross either.
func (w *writer) WriteHeader(status int) {
	if status < http.StatusOK || w.began {
		return
	}
	w.Header().Del("Set-Cookie")
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

// begin returns the seat of the request, and records that the response has begun.
func (w *writer) begin(status int) {
	w.began = true
	w.request.Begin(status)
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
	return conn, buffered, nil
}

// Unwrap supports http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
