package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/http/browsers"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/vocabulary"
)

func parse(t *testing.T, args ...string) (*Console, error) {
	t.Helper()
	var s Settings
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s.New(vocabulary.Platform(), &browsers.Headers{}, Documented{Version: "v1.21"})
}

// ask sends a request through the stage; reached is whether it got to the next one.
func ask(c *Console, r *http.Request) (w *httptest.ResponseRecorder, reached bool) {
	w = httptest.NewRecorder()
	_ = c.Pages(func(http.ResponseWriter, *request.Request) error { reached = true; return nil })(w, &request.Request{Request: r})
	return w, reached
}

func TestPages(t *testing.T) {
	c, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		code        int
		contentType string
		contains    string
	}{
		"/console":               {301, "text/html", "/console/"},
		"/console/":              {200, "text/html", `<script type="module" src="js/main.js">`},
		"/console/console.css":   {200, "text/css", ":root"},
		"/console/js/main.js":    {200, "text/javascript", "import"},
		"/console/settings.json": {200, "application/json", `"meta":"meta.platform.io"`},
		"/console/icon.svg":      {200, "image/svg+xml", "<svg"},
		"/console/none":          {404, "text/plain", "not found"},
		"/console/../go.mod":     {404, "text/plain", "not found"},
		"/console/login":         {404, "text/plain", "not found"}, // no issuer
		"/docs":                  {301, "text/html", "/docs/"},
		"/docs/":                 {200, "text/html", "tutorial.md"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		w, reached := ask(c, r)
		if reached || w.Code != want.code || !strings.HasPrefix(w.Header().Get("Content-Type"), want.contentType) || !strings.Contains(w.Body.String(), want.contains) {
			t.Errorf("%s: %d %s %.60q", path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
			t.Errorf("%s: its policy is %q", path, got)
		}
	}
	for _, path := range []string{"/", "/consolex", "/api", "/Console/", "/docsx", "/Docs/"} {
		if _, reached := ask(c, httptest.NewRequest("GET", path, nil)); !reached {
			t.Errorf("%s is the console's", path)
		}
	}
	for accepted, redirected := range map[string]bool{"text/html,application/xhtml+xml,*/*;q=0.8": true, "*/*": false, "application/json": false, "": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", accepted)
		if w, reached := ask(c, r); reached == redirected || redirected && (w.Code != http.StatusFound || w.Header().Get("Location") != "/console/") {
			t.Errorf("/ for %q: reached %v, %d %v", accepted, reached, w.Code, w.Header())
		}
	}
	if w, _ := ask(c, httptest.NewRequest("POST", "/console/", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	first, _ := ask(c, httptest.NewRequest("GET", "/console/", nil))
	again := httptest.NewRequest("GET", "/console/", nil)
	again.Header.Set("If-None-Match", first.Header().Get("Etag"))
	if w, _ := ask(c, again); w.Code != http.StatusNotModified {
		t.Errorf("a file that the browser has: %d", w.Code)
	}
}

// TestFilesKeepThePolicy: no file needs what the content security policy forbids.
func TestFilesKeepThePolicy(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://|\son[a-z]+="|style="`)
	for name, f := range all {
		if name == "icon.svg" {
			continue // names its namespace
		}
		if found := forbidden.Find(f.Content()); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func TestSettings(t *testing.T) {
	if c, err := parse(t, "--console=false"); c != nil || err != nil {
		t.Errorf("--console=false: %v, %v", c, err)
	} else if _, reached := ask(c, httptest.NewRequest("GET", "/console/", nil)); !reached {
		t.Error("--console=false serves pages")
	}
	for _, args := range [][]string{
		{"--console-oidc-issuer-url=http://issuer.example", "--console-oidc-client-id=x"},
		{"--console-oidc-issuer-url=https://issuer.example"},
		{"--console-oidc-client-id=x"},
		{"--console=false", "--console-oidc-issuer-url=https://issuer.example", "--console-oidc-client-id=x"},
		{"--console-oidc-issuer-url=https://issuer.example", "--console-oidc-client-id=x", "--console-oidc-ca-file=none"},
		{"--console-oidc-issuer-url=https://issuer.example", "--console-oidc-client-id=x", "--console-oidc-client-secret-file=none"},
	} {
		if _, err := parse(t, args...); !errors.Is(err, run.ErrUsage) {
			t.Errorf("%s: %v is no usage error", args, err)
		}
	}
}

// TestHostOfItsOwn: with a host of its own, the console is served for no other one, and neither is the
// documentation, which has its files. Without, browsers get neither by a name that is not the front
// door's.
func TestHostOfItsOwn(t *testing.T) {
	c, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	c.browsers = &browsers.Headers{ConsoleHost: "console.example", Names: func(host string) bool { return host == "door" }}
	for _, q := range []struct {
		own        string
		host, path string
		served     bool
	}{
		{"console.example", "console.example:6443", "/console/", true},
		{"console.example", "CONSOLE.example", "/console/js/main.js", true},
		{"console.example", "console.example", "/docs/", true},
		{"console.example", "door:6443", "/console/", false},
		{"console.example", "127.0.0.1:6443", "/console/", false},
		{"console.example", "door", "/docs/", false},
		{"", "door", "/docs/", true},
		{"", "127.0.0.1:6443", "/console/", true},
		{"", "evil.example", "/docs/", false},
		{"", "evil.example", "/console/", false},
	} {
		c.browsers.ConsoleHost = q.own
		r := httptest.NewRequest("GET", q.path, nil)
		r.Host = q.host
		r.Header.Set("Sec-Fetch-Site", "none")
		if w, _ := ask(c, r); (w.Code == http.StatusOK && w.Body.Len() > 0) != q.served {
			t.Errorf("%s%s: %d", q.host, q.path, w.Code)
		}
	}
	c.browsers.ConsoleHost = "console.example"
	var s Settings
	if _, err := s.New(vocabulary.Platform(), c.browsers, Documented{}); err == nil {
		t.Error("a host for no console is accepted")
	}
}
