package matrix

import (
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rawhttp"
)

// browsers sends what pages of this and of other origins make a browser send, with credentials that it
// adds by itself and with those of the page.
func (s *scene) browsers(t *testing.T) *table {
	t.Helper()
	proxy, alice := s.proxies.issue(t, s.ProxyName, nil, nil), s.users.issue(t, "alice", nil, nil)
	credentials := []struct {
		name string
		attempt
	}{
		{"a certificate", attempt{nil, &alice}},
		{"a token", attempt{[]string{"Authorization: Bearer " + staticToken}, nil}},
		{"a front proxy", attempt{[]string{"X-Remote-User: pat"}, &proxy}},
	}
	kinds := []struct {
		name, method string
		headers      []string
	}{
		{"read", http.MethodGet, nil},
		{"write", http.MethodPost, nil},
		{"upgrade", http.MethodGet, []string{"Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}},
	}
	columns := []string{}
	for _, kind := range kinds {
		for _, c := range credentials {
			columns = append(columns, kind.name+" by "+c.name)
		}
	}
	grid := newTable("request", columns...)
	for _, page := range pages() {
		var cells []string
		for _, kind := range kinds {
			for _, c := range credentials {
				connection := "Connection: close"
				if kind.headers != nil {
					connection = "Connection: Upgrade"
				}
				headers := append(append(append([]string{connection}, page.headers...), kind.headers...), c.headers...)
				cells = append(cells, outcomeOf(s.send(t, head(kind.method, page.host, headers), c.certificate)))
			}
		}
		grid.add(page.what, cells...)
	}
	return grid
}

// page is what a page makes a browser send.
type page struct {
	what, host string
	headers    []string
}

func pages() []page {
	const own, evil = "Origin: https://localhost", "Origin: https://evil.example"
	return []page{
		{"no browser", "localhost", nil},
		{"a page of the host", "localhost", []string{own, "Sec-Fetch-Site: same-origin"}},
		{"the address bar", "localhost", []string{"Sec-Fetch-Site: none"}},
		{"a page of another origin", "localhost", []string{evil, "Sec-Fetch-Site: cross-site"}},
		{"the same in a browser without Sec-Fetch-Site", "localhost", []string{evil}},
		{"a page without an origin", "localhost", []string{"Origin: null"}},
		{"an image of another origin", "localhost", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}},
		{"a page of a host beside this one", "localhost", []string{"Sec-Fetch-Site: same-site"}},
		{"a page of another port", "localhost", []string{"Origin: https://localhost:1"}},
		{"a page without TLS", "localhost", []string{"Origin: http://localhost"}},
		{"a page whose name leads here", "evil.example", []string{evil, "Sec-Fetch-Site: same-origin"}},
		{"another name, no browser", "evil.example", nil},
		{"a service worker", "localhost", []string{"Service-Worker: script", "Sec-Fetch-Site: same-origin"}},
	}
}

// head returns the head of a request to a host.
func head(method, host string, headers []string) string {
	text := rawhttp.Head(method, attack.SecretsPath, headers...)
	return strings.Replace(text, "Host: localhost", "Host: "+host, 1)
}
