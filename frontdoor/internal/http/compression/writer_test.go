package compression_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/compression"
)

// TestWrap serves bodies to a client whose transport does not decompress by itself.
func TestWrap(t *testing.T) {
	var compressor compression.Compressor
	large := strings.Repeat("0123456789abcdef", 20<<10)
	for _, c := range []struct {
		name, accept, body string
		flush, compressed  bool
	}{
		{"small", "gzip", "x", false, false},
		{"empty", "gzip", "", false, false},
		{"large", "gzip", large, false, true},
		{"large, other codings first", "br;q=1.0, gzip;q=0.8", large, false, true},
		{"large, not asked for", "identity", large, false, false},
		{"large, refused", "gzip;q=0", large, false, false},
		{"large, but a stream", "gzip", large, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
				w := compressor.Wrap(plain, r)
				w.WriteHeader(http.StatusAccepted)
				if c.flush {
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Error(err)
					}
				}
				for from := 0; from < len(c.body); from += 30000 {
					if _, err := io.WriteString(w, c.body[from:min(from+30000, len(c.body))]); err != nil {
						t.Error(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			r, err := http.NewRequest(http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.accept != "gzip" {
				r.Header.Set("Accept-Encoding", c.accept)
			}
			response, err := server.Client().Do(r) // requests gzip and decompresses by itself
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusAccepted {
				t.Fatal(response.Status, err)
			}
			compressed := response.Uncompressed || response.Header.Get("Content-Encoding") == "gzip"
			if compressed != c.compressed {
				t.Errorf("compressed: %v", compressed)
			}
			if !strings.HasPrefix(c.accept, "br") && string(body) != c.body {
				t.Errorf("%d bytes differ from %d", len(body), len(c.body))
			}
		})
	}
}

// TestErrorInPlaceOfBody restarts a response while nothing has been sent.
func TestErrorInPlaceOfBody(t *testing.T) {
	var compressor compression.Compressor
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	recorder := httptest.NewRecorder()
	w := compressor.Wrap(recorder, r)
	if _, err := io.WriteString(w, strings.Repeat("begun ", 10_000)); err != nil {
		t.Fatal(err)
	}
	w.WriteHeader(http.StatusGone)
	if _, err := io.WriteString(w, "too old"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if recorder.Code != http.StatusGone || recorder.Body.String() != "too old" {
		t.Errorf("%d %.60s", recorder.Code, recorder.Body)
	}
}
