package timings

import "net/http"

// maxHeld bounds what is held of a body, in bytes.
const maxHeld = 1 << 20

// writer holds a response.
type writer struct {
	http.ResponseWriter
	announce func() // sets the headers that are known last
	status   int
	body     []byte
	sent     bool
}

// WriteHeader restarts the response until something has been sent.
func (w *writer) WriteHeader(status int) {
	if w.sent || status < http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status, w.body = status, w.body[:0]
}

func (w *writer) Write(p []byte) (int, error) {
	if !w.sent && len(w.body)+len(p) <= maxHeld {
		w.body = append(w.body, p...)
		return len(p), nil
	}
	if err := w.send(); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(p)
}

// send sends what is held. Nothing is held afterwards.
func (w *writer) send() error {
	if w.sent {
		return nil
	}
	w.sent = true
	w.announce()
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
	if len(w.body) == 0 {
		return nil
	}
	_, err := w.ResponseWriter.Write(w.body)
	w.body = nil
	return err
}

// drop discards what is held: an error replaces it.
func (w *writer) drop() {
	if !w.sent {
		w.sent = true
		w.announce()
	}
}

// FlushError sends everything so far.
func (w *writer) FlushError() error {
	if err := w.send(); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// Unwrap supports http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var _ http.Flusher = (*writer)(nil)
