package oidchttp

import (
	"compress/gzip"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/services/ledger"
)

// TestIssuersThatMisbehave: a response takes bounded memory, also one that grows when it is
// decompressed, and no redirect leads to a server without TLS.
func TestIssuersThatMisbehave(t *testing.T) {
	var elsewhere atomic.Int32
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer plain.Close()
	pages := http.NewServeMux()
	pages.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("a", int(ledger.IssuerAnswer.Bytes)))
	})
	pages.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 64<<10); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	pages.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		for block := make([]byte, 1<<20); ; {
			if _, err := z.Write(block); err != nil {
				return
			}
		}
	})
	pages.HandleFunc("/headers", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 20 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("a", maxHeader))
		}
	})
	pages.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
	})
	pages.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	server := httptest.NewUnstartedServer(pages)
	server.EnableHTTP2, server.Config.ErrorLog = true, slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := &http.Client{Transport: Transport(roots), Timeout: Patience}
	for path, want := range map[string]string{"/good": "", "/endless": "more than", "/bomb": "more than", "/headers": "PROTOCOL_ERROR",
		"/redirect": "not an https URL", "/loop": "redirects"} {
		response, err := client.Get(server.URL + path)
		if err == nil {
			_, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect to a server without TLS was followed")
	}
	if _, err := (&http.Client{Transport: Transport(nil)}).Get(server.URL + "/good"); err == nil {
		t.Error("an unknown authority is trusted")
	}
	if transport, ok := Transport(nil).(bounded).RoundTripper.(*http.Transport); !ok || transport.HTTP2 == nil || transport.DialContext == nil {
		t.Error("silent connections are not noticed")
	}
}
