package wire

import (
	"net/http"
	"net/url"
	"testing"
)

// FuzzAccept parses arbitrary Accept headers: there are at most as many ranges as elements,
// ordered by weight.
func FuzzAccept(f *testing.F) {
	f.Fuzz(func(t *testing.T, accept, include string) {
		commas := 1
		for _, c := range accept {
			if c == ',' {
				commas++
			}
		}
		if ranges := parseAccept(accept); len(ranges) > commas {
			t.Errorf("%q has %d ranges", accept, len(ranges))
		}
		_, _ = parseInclude(include)
		r := &http.Request{Header: http.Header{"Accept": {accept}}, URL: &url.URL{RawQuery: "includeObject=" + url.QueryEscape(include)}}
		WantsPretty(r, r.URL.Query())
	})
}
