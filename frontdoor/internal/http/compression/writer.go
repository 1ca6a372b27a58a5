// Package compression gzips large responses for clients that accept it, depending on the
// request's Accept-Encoding and the size of the body. It does not compress streams such as
// watches. It serves "Content negotiation" of the specification.
package compression

import (
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// threshold is the smallest body that is compressed, in bytes.
const threshold = 128 << 10

// Compressor holds the pools that responses share. It is safe for concurrent use, and
// its zero value is ready.
type Compressor struct {
	bodies sync.Pool // of *[]byte with capacity threshold
	gzips  sync.Pool // of *gzip.Writer
}

// Wrap returns a writer that compresses the response if the client accepts gzip and the
// body reaches the threshold. The caller must close it when the response is complete.
func (c *Compressor) Wrap(w http.ResponseWriter, r *http.Request) *Writer {
	return &Writer{ResponseWriter: w, compressor: c, undecided: acceptsGzip(r)}
}

func acceptsGzip(r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" {
		return false // the connection will be taken over
	}
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.TrimSpace(name) == "gzip" {
			q := strings.TrimSpace(weight)
			return q != "q=0" && q != "q=0.0"
		}
	}
	return false
}

// Writer buffers the start of a body until it is decided whether to compress.
type Writer struct {
	http.ResponseWriter
	compressor *Compressor
	undecided  bool
	code       int
	held       *[]byte
	gzip       *gzip.Writer // nil unless compressing
}

// WriteHeader is buffered with the start of the body. Until something has been sent it
// restarts the response, so that an error can replace a body that was begun.
func (w *Writer) WriteHeader(code int) {
	if w.undecided {
		w.code = code
		if w.held != nil {
			*w.held = (*w.held)[:0]
		}
		return
	}
	w.ResponseWriter.WriteHeader(code)
}

// Sent reports whether anything has been sent. Until then WriteHeader restarts the
// response.
func (w *Writer) Sent() bool { return !w.undecided }

func (w *Writer) Write(p []byte) (int, error) {
	if w.undecided {
		if w.held == nil {
			w.held = w.compressor.body()
		}
		if len(*w.held)+len(p) < threshold {
			*w.held = append(*w.held, p...)
			return len(p), nil
		}
		if err := w.decide(true); err != nil {
			return 0, err
		}
	}
	if w.gzip != nil {
		return w.gzip.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// decide chooses the encoding and sends the buffer.
func (w *Writer) decide(compress bool) error {
	w.undecided = false
	h := w.Header()
	if compress && h.Get("Content-Encoding") == "" {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		h.Del("Content-Length")
		w.gzip = w.compressor.gzip()
		w.gzip.Reset(w.ResponseWriter)
	}
	if w.code != 0 {
		w.ResponseWriter.WriteHeader(w.code)
	}
	if w.held == nil {
		return nil
	}
	held := w.held
	w.held = nil
	defer w.compressor.bodies.Put(held)
	_, err := w.Write(*held)
	return err
}

func (c *Compressor) body() *[]byte {
	if b, ok := c.bodies.Get().(*[]byte); ok {
		*b = (*b)[:0]
		return b
	}
	b := make([]byte, 0, threshold)
	return &b
}

func (c *Compressor) gzip() *gzip.Writer {
	if z, ok := c.gzips.Get().(*gzip.Writer); ok {
		return z
	}
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return z
}

// FlushError sends everything so far, except a body that is still undecided.
func (w *Writer) FlushError() error {
	if w.undecided {
		if err := w.decide(false); err != nil {
			return err
		}
	}
	if w.gzip != nil {
		if err := w.gzip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *Writer) Flush() { _ = w.FlushError() }

// Unwrap supports http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Close completes the body.
func (w *Writer) Close() error {
	if w.undecided {
		return w.decide(false)
	}
	if w.gzip == nil {
		return nil
	}
	err := w.gzip.Close()
	w.compressor.gzips.Put(w.gzip)
	w.gzip = nil
	return err
}

var _ http.Flusher = (*Writer)(nil)
