package wire

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// worthCompressing is the size of a body from which compression pays.
const worthCompressing = 128 << 10

// Compressed wraps a response so that its body is compressed when the client
// accepts gzip and the body turns out large. A response that is flushed, such as
// a watch, is not. Close must be called when the response is complete.
func (c *Codec) Compressed(w http.ResponseWriter, r *http.Request) *CompressedWriter {
	return &CompressedWriter{ResponseWriter: w, codec: c, undecided: acceptsGzip(r)}
}

func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.TrimSpace(name) == "gzip" {
			q := strings.TrimSpace(weight)
			return q != "q=0" && q != "q=0.0"
		}
	}
	return false
}

// CompressedWriter holds back the start of a body until it is known whether the
// rest is worth compressing.
type CompressedWriter struct {
	http.ResponseWriter
	codec     *Codec
	undecided bool
	code      int
	held      *[]byte
	gzip      *gzip.Writer // nil unless compressing
}

// WriteHeader is held back with the start of the body.
func (w *CompressedWriter) WriteHeader(code int) {
	if w.undecided {
		w.code = code
		return
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *CompressedWriter) Write(p []byte) (int, error) {
	if w.undecided {
		if w.held == nil {
			w.held = w.codec.buffer()
		}
		if len(*w.held)+len(p) < worthCompressing {
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

// decide sends what was held back.
func (w *CompressedWriter) decide(compress bool) error {
	w.undecided = false
	h := w.Header()
	if compress && h.Get("Content-Encoding") == "" {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		h.Del("Content-Length")
		w.gzip = w.codec.gzipWriter()
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
	defer w.codec.release(held)
	_, err := w.Write(*held)
	return err
}

func (c *Codec) gzipWriter() *gzip.Writer {
	if z, ok := c.gzips.Get().(*gzip.Writer); ok {
		return z
	}
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return z
}

// FlushError sends everything so far; a body that is still undecided stays as
// it is.
func (w *CompressedWriter) FlushError() error {
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

// Flush is FlushError for the callers of http.Flusher.
func (w *CompressedWriter) Flush() { _ = w.FlushError() }

// Unwrap lets http.ResponseController reach the response.
func (w *CompressedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Close completes the body.
func (w *CompressedWriter) Close() error {
	if w.undecided {
		return w.decide(false)
	}
	if w.gzip == nil {
		return nil
	}
	err := w.gzip.Close()
	w.codec.gzips.Put(w.gzip)
	w.gzip = nil
	return err
}

var _ http.Flusher = (*CompressedWriter)(nil)
