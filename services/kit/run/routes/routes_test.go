package routes_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/services/kit/run/routes"
)

func TestRouter(t *testing.T) {
	r := routes.New()
	r.Get("/metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	r.Get("/livez/{check}", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PathValue("check")) })
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/metrics", 200, "metrics"},
		{"HEAD", "/metrics", 200, "metrics"}, // the recorder keeps the body that a server drops
		{"GET", "/%6detrics", 200, "metrics"},
		{"POST", "/metrics", 405, ""},
		{"GET", "/metrics/", 404, "404 page not found\n"},
		{"GET", "//metrics", 404, "404 page not found\n"},
		{"GET", "/x/../metrics", 404, "404 page not found\n"},
		{"GET", "/livez/ping", 200, "ping"},
		{"GET", "/livez/", 404, "404 page not found\n"},
		{"GET", "/livez/a/b", 404, "404 page not found\n"},
		{"GET", "/livez/a%2Fb", 404, "404 page not found\n"},
		{"POST", "/nowhere", 404, "404 page not found\n"},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.code || w.Body.String() != c.body {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, w.Code, w.Body, c.code, c.body)
		}
	}
}
