package compression

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzAcceptEncoding: only clients that accept gzip, by name or wildcard, get
// compressed responses.
func FuzzAcceptEncoding(f *testing.F) {
	f.Fuzz(func(t *testing.T, header string) {
		accepts := acceptsGzip(&http.Request{Header: http.Header{"Accept-Encoding": {header}}})
		if accepts && !strings.Contains(strings.ToLower(header), "gzip") && !strings.Contains(header, "*") {
			t.Errorf("%q does not ask for gzip", header)
		}
	})
}
