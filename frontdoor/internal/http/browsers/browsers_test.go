package browsers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
)

func parse(t *testing.T, args ...string) (*Headers, error) {
	t.Helper()
	var s Settings
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s.New()
}

// ask sends a request through the stage and reports whether it went on.
func ask(t *testing.T, h *Headers, method, origin string) (got *httptest.ResponseRecorder, passed bool) {
	t.Helper()
	got = httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://door/api", nil)
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	err := h.Set(func(w http.ResponseWriter, _ *request.Request) error {
		passed = true
		w.WriteHeader(http.StatusUnauthorized)
		return nil
	})(got, &request.Request{Request: r})
	if err != nil {
		t.Fatal(err)
	}
	return got, passed
}

func TestCrossOrigin(t *testing.T) {
	h, err := parse(t, `--cors-allowed-origins=^https://console\.example\.com$`, `--cors-allowed-origins=//localhost(:|$)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, origin  string
		allowed, passed bool
	}{
		{"OPTIONS", "https://console.example.com", true, false},
		{"GET", "https://console.example.com", true, true},
		{"GET", "http://localhost:8080", true, true},
		{"OPTIONS", "https://console.example.com.evil.org", false, true},
		{"OPTIONS", "https://consoleXexample.com", false, true},
		{"GET", "null", false, true},
		{"OPTIONS", "", false, true},
	} {
		got, passed := ask(t, h, c.method, c.origin)
		want := ""
		if c.allowed {
			want = c.origin
		}
		if header := got.Header().Get("Access-Control-Allow-Origin"); header != want || passed != c.passed {
			t.Errorf("%s from %q: allowed origin %q, passed on: %v", c.method, c.origin, header, passed)
		}
		if methods := got.Header().Get("Access-Control-Allow-Methods"); c.allowed != (methods == "POST, GET, OPTIONS, PUT, DELETE, PATCH") {
			t.Errorf("%s from %q: methods %q", c.method, c.origin, methods)
		}
		if !passed && got.Code != http.StatusNoContent {
			t.Errorf("preflight: got %d", got.Code)
		}
	}
	off, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if got, passed := ask(t, off, "OPTIONS", "https://console.example.com"); !passed || len(got.Header()) > 0 {
		t.Errorf("without flags: passed on: %v, %v", passed, got.Header())
	}
}

func TestTransportSecurity(t *testing.T) {
	h, err := parse(t, "--strict-transport-security-directives=max-age=31536000,includeSubDomains,preload")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := ask(t, h, "GET", "")
	if header := got.Header().Get("Strict-Transport-Security"); header != "max-age=31536000; includeSubDomains; preload" {
		t.Errorf("got %q", header)
	}
}

func TestInvalidFlags(t *testing.T) {
	for _, flag := range []string{
		"--cors-allowed-origins=(", "--strict-transport-security-directives=max-age", "--strict-transport-security-directives=max-age=soon",
		"--strict-transport-security-directives=max-age=1,", "--strict-transport-security-directives=preload;x",
	} {
		name, _, _ := strings.Cut(flag, "=")
		if _, err := parse(t, flag); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
