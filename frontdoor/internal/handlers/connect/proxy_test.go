package connect

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/resource"
)

// backendAt starts a server without TLS, and stores a pod that has its address and a
// service with that pod as its endpoint.
func (b *bench) backendAt(name string, serve http.HandlerFunc) {
	b.Helper()
	server := httptest.NewServer(serve)
	b.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.pod(name, fmt.Sprintf(`,"spec":{"containers":[{"name":"a","ports":[{"containerPort":%s}]}]},"status":{"podIPs":[{"ip":"127.0.0.1"}]}`, u.Port()))
	b.keep(resource.GroupResource{Resource: "services"}, "default", fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q,"namespace":"default","uid":"s-%s"},
		"spec":{"ports":[{"name":"web","port":80},{"name":"other","port":81}]}}`, name, name))
	b.keep(resource.GroupResource{Resource: "endpoints"}, "default", fmt.Sprintf(`{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":%q,"namespace":"default","uid":"e-%s"},
		"subsets":[{"addresses":[{"ip":"127.0.0.1","targetRef":{"kind":"Pod","namespace":"default","name":%q}},{"ip":"127.0.0.2"},{"ip":"127.0.0.3","targetRef":{"kind":"Pod","namespace":"other","name":%q}}],
		"ports":[{"name":"web","port":%s},{"name":"","port":%s}]}]}`, name, name, name, name, u.Port(), u.Port()))
}

// TestProxies: a request reaches the pod, the endpoint and the node with its method,
// path, query and body, and without credentials of the client.
func TestProxies(t *testing.T) {
	show := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "secret"})
		w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		_, _ = fmt.Fprintf(w, "%s %s %s %v", r.Method, r.URL.RequestURI(), body, r.Header)
	}
	b := newBench(t, show)
	b.backendAt("web", show)
	for path, want := range map[string]string{
		"pods/web/proxy/a/b/?c=d%20e":           "POST /a/b/?c=d%20e ",
		"pods/web/proxy/":                       "POST / ",
		"pods/http:web:/proxy/x":                "POST /x ",
		"services/web/proxy/x":                  "POST /x ",
		"services/web:80/proxy/x":               "POST /x ",
		"services/web:web/proxy/x":              "POST /x ",
		"services/http:web:web/proxy/%252e/%3F": "POST /%252e/%3F ",
		"../../nodes/n/proxy/stats/summary":     "POST /stats/summary ",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.front.URL, strings.NewReader("the body"))
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//front/api/v1/namespaces/default/" + path
		if rest, ok := strings.CutPrefix(path, "../../"); ok {
			r.URL.Opaque = "//front/api/v1/" + rest
		}
		for _, name := range []string{"Authorization", "Cookie", "X-Remote-User", "X-Remote-Extra-A", "Impersonate-Group", "Proxy-Authorization"} {
			r.Header.Set(name, "secret")
		}
		r.Header.Set("X-Kept", "kept")
		r.URL.Host = b.front.Listener.Addr().String()
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if got := string(body); response.StatusCode != 200 || !strings.HasPrefix(got, want+"the body") || strings.Contains(got, "secret") ||
			!strings.Contains(got, "X-Kept:[kept]") || !strings.Contains(got, "X-Forwarded-For:[127.0.0.1]") || response.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %s %v", path, response.StatusCode, got, response.Header)
		}
		if date := response.Header.Get("Date"); date == "" || strings.Contains(date, "1970") {
			t.Errorf("%s: the time of the response is %q", path, date)
		}
	}
}

// TestRefusedProxies: what cannot be reached is an error that says why.
func TestRefusedProxies(t *testing.T) {
	b := newBench(t, func(http.ResponseWriter, *http.Request) {})
	b.backendAt("web", func(http.ResponseWriter, *http.Request) {})
	b.pod("bare", `,"spec":{"containers":[{"name":"a"}]}`)
	b.pod("linked", `,"spec":{"containers":[{"name":"a"}]},"status":{"podIPs":[{"ip":"169.254.169.254"}]}`)
	b.keep(resource.GroupResource{Resource: "endpoints"}, "default", `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"linked","namespace":"default","uid":"e"},
		"subsets":[{"addresses":[{"ip":"169.254.169.254","targetRef":{"kind":"Pod","namespace":"default","name":"linked"}}],"ports":[{"port":80}]}]}`)
	for path, want := range map[string]string{
		"pods/bare/proxy/":          "400 address not allowed",
		"pods/linked/proxy/":        "400 address not allowed",
		"services/linked/proxy/":    "400 address not allowed",
		"pods/web:web/proxy/":       `400 invalid pod request: the port "web" is not a number`,
		"pods/ftp:web:1/proxy/":     `400 invalid pod request "ftp:web:1"`,
		"pods/web:1/proxy/":         "503 error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused",
		"pods/https:web:/proxy/":    "503 error trying to reach service: ",
		"pods/none/proxy/":          `404 pods "none" not found`,
		"services/none/proxy/":      `404 endpoints "none" not found`,
		"services/web:82/proxy/":    `503 no service port 82 found for service "web"`,
		"services/web:other/proxy/": `503 no endpoints available for service "web:other"`,
		"services/web:a:b:c/proxy/": `400 invalid service request "web:a:b:c"`,
	} {
		code, body := b.ask(http.MethodGet, path, nil)
		if got := fmt.Sprint(code, " ", body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestProxiedPages: links of a page and redirects lead through the proxy again, other
// content is not changed, and a page that cannot be held in memory is refused.
func TestProxiedPages(t *testing.T) {
	b := newBench(t, func(http.ResponseWriter, *http.Request) {})
	b.backendAt("web", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/new", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://elsewhere/new", http.StatusFound)
		case "/zip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, `<a href="/b">b</a>`)
			_ = z.Close()
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "<!--")
			for range 64 {
				_, _ = z.Write(bytes.Repeat([]byte("a"), 1<<20))
			}
			_ = z.Close()
		case "/cut":
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "cut")
		case "/long":
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		case "/part":
			w.Header().Set("Content-Type", "application/octet-stream")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(bytes.Repeat([]byte("a"), 300<<10))
		default:
			_, _ = io.WriteString(w, `<a href="/b">b</a>`)
		}
	})
	const at = "/api/v1/namespaces/default/pods/web/proxy"
	for path, want := range map[string]string{
		"/": `200 <a href="` + at + `/b">b</a>`, "/zip": `200 <a href="` + at + `/b">b</a>`,
		"/bomb": "500 the HTML page is too large", "/long": "503 error trying to reach service: net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded",
	} {
		code, body := b.ask(http.MethodGet, "pods/web/proxy"+path, nil)
		if got := fmt.Sprint(code, " ", body); !strings.HasPrefix(got, want) || len(got) > 1000 {
			t.Errorf("%s: got %.500s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]string{"/moved": at + "/new", "/away": "http://elsewhere/new"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.front.URL+at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Location"); response.StatusCode != 302 || !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %d %s, want %s", path, response.StatusCode, got, want)
		}
	}
	if code, body, err := b.do(http.MethodGet, at+"/cut", nil); err == nil {
		t.Errorf("a response that was cut: got %d %q without an error", code, body)
	}
	if code, body := b.ask(http.MethodGet, "pods/web/proxy/part", nil); code != 206 || len(body) != 300<<10 {
		t.Errorf("a partial response: got %d and %d bytes", code, len(body))
	}
	if code, _ := b.ask(http.MethodGet, "pods/web/proxy", nil); code != 301 {
		t.Errorf("without the slash: got %d", code)
	}
}
