package wire

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/wire/accept"
)

// FuzzAccept parses arbitrary Accept headers: there are at most as many ranges as elements,
// ordered by weight.
func FuzzAccept(f *testing.F) {
	f.Fuzz(func(t *testing.T, header, include string) {
		commas := 1
		for _, c := range header {
			if c == ',' {
				commas++
			}
		}
		if ranges := accept.Parse(header); len(ranges) > commas {
			t.Errorf("%q has %d ranges", header, len(ranges))
		}
		_, _ = parseInclude(include)
		r := &http.Request{Header: http.Header{"Accept": {header}}, URL: &url.URL{RawQuery: "includeObject=" + url.QueryEscape(include)}}
		WantsPretty(r, r.URL.Query())
	})
}
