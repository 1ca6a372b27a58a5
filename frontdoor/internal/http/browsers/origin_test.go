package browsers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// through sends a request through both stages, and returns the status code; 200 if it passed.
func through(t *testing.T, h *Headers, r *request.Request) int {
	t.Helper()
	end := func(http.ResponseWriter, *request.Request) error { return nil }
	if err := h.Guarded(h.Ambient(end))(httptest.NewRecorder(), r); err != nil {
		return int(services.AsStatus(err).Code)
	}
	return http.StatusOK
}

// sent returns a request to https://door:6443 with headers and a method of authentication.
func sent(t *testing.T, method, credential string, headers ...string) *request.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://door:6443/api/v1/pods", nil)
	r.Host = "door:6443"
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return &request.Request{Request: r, Credential: credential}
}

const upgrade = "Upgrade: websocket"

// TestOtherOrigins: what a page of another origin makes a browser send is refused if it writes or is
// an upgrade, and whatever it is if the browser has authenticated by itself. Pages of this host and of
// the allowed origins, and clients that are no browsers, are not affected.
func TestOtherOrigins(t *testing.T) {
	h, err := parse(t, `--cors-allowed-origins=^https://dash\.example$`, "--console-host=Console.example", "--browser-hosts=balancer.example")
	if err != nil {
		t.Fatal(err)
	}
	h.Names = func(host string) bool { return host == "door" }
	const token, none = "token-file", ""
	for name, c := range map[string]struct {
		headers                                  []string
		read, write, ambientRead, ambientUpgrade int
	}{
		"no browser":               {nil, 200, 200, 200, 200},
		"own page":                 {[]string{"Origin: https://door:6443", "Sec-Fetch-Site: same-origin"}, 200, 200, 200, 200},
		"own page, old browser":    {[]string{"Origin: https://DOOR:6443"}, 200, 200, 200, 200},
		"address bar":              {[]string{"Sec-Fetch-Site: none"}, 200, 200, 200, 200},
		"own page without origin":  {[]string{"Sec-Fetch-Site: same-origin"}, 200, 200, 200, 200},
		"allowed page":             {[]string{"Origin: https://dash.example", "Sec-Fetch-Site: cross-site"}, 200, 200, 200, 200},
		"page of the console":      {[]string{"Origin: https://console.example:6443", "Sec-Fetch-Site: same-site"}, 200, 200, 200, 200},
		"other page":               {[]string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, 200, 403, 403, 403},
		"other page, old browser":  {[]string{"Origin: https://evil.example"}, 200, 403, 403, 403},
		"image of another page":    {[]string{"Sec-Fetch-Site: cross-site"}, 200, 403, 403, 403},
		"subdomain":                {[]string{"Sec-Fetch-Site: same-site"}, 200, 403, 403, 403},
		"other port":               {[]string{"Origin: https://door"}, 200, 403, 403, 403},
		"other scheme":             {[]string{"Origin: http://door:6443"}, 200, 403, 403, 403},
		"sandbox":                  {[]string{"Origin: null"}, 200, 403, 403, 403},
		"own origin, other site":   {[]string{"Origin: https://door:6443", "Sec-Fetch-Site: cross-site"}, 200, 403, 403, 403},
		"two origins":              {[]string{"Origin: https://door:6443", "Origin: https://evil.example"}, 200, 403, 403, 403},
		"unknown site":             {[]string{"Sec-Fetch-Site: near"}, 200, 403, 403, 403},
		"claims to be same origin": {[]string{"Origin: https://evil.example", "Sec-Fetch-Site: same-origin"}, 200, 403, 403, 403},
		"proxy of kubectl":         {[]string{"Origin: http://localhost:8001", "Sec-Fetch-Site: same-origin"}, 200, 200, 200, 200},
		"page on this machine":     {[]string{"Origin: http://127.0.0.1:7718"}, 200, 403, 403, 403},
		"proxy of a dashboard":     {[]string{"Origin: https://headlamp.example", "Sec-Fetch-Site: same-origin", "Authorization: Bearer x"}, 200, 200, 200, 200},
		"library for WebSockets":   {[]string{"Origin: http://localhost", "Authorization: Bearer x"}, 200, 200, 200, 200},
		"rebound name":             {[]string{"Host: evil.example:6443", "Origin: https://evil.example:6443", "Sec-Fetch-Site: same-origin"}, 200, 200, 403, 403},
		"rebound name, old":        {[]string{"Host: evil.example:6443", "Origin: https://evil.example:6443"}, 200, 200, 403, 403},
		"name of a program":        {[]string{"Host: evil.example:6443"}, 200, 200, 200, 200},
		"balancer":                 {[]string{"Host: balancer.example", "Origin: https://balancer.example"}, 200, 200, 200, 200},
		"address":                  {[]string{"Host: [2001:db8::1]:6443", "Origin: https://[2001:db8::1]:6443"}, 200, 200, 200, 200},
	} {
		for _, q := range []struct {
			r    *request.Request
			want int
		}{
			{sent(t, http.MethodGet, none, c.headers...), c.read},
			{sent(t, http.MethodHead, token, c.headers...), c.read},
			{sent(t, http.MethodPost, none, c.headers...), c.write},
			{sent(t, http.MethodDelete, token, c.headers...), c.write},
			{sent(t, http.MethodConnect, token, c.headers...), c.write},
			{sent(t, http.MethodGet, token, append(c.headers, upgrade)...), c.write},
			{sent(t, http.MethodGet, services.ByCertificate, c.headers...), c.ambientRead},
			{sent(t, http.MethodGet, services.ByCertificate, append(c.headers, upgrade)...), c.ambientUpgrade},
		} {
			if got := through(t, h, q.r); got != q.want {
				t.Errorf("%s: %s %v by %q: got %d, want %d", name, q.r.Method, q.r.Header, q.r.Credential, got, q.want)
			}
		}
	}
}

// TestBodiesFromBrowsers: a body needs its Content-Type if a browser has sent it: pages of other
// origins can send one without, but not one of JSON.
func TestBodiesFromBrowsers(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{nil, 200},
		{[]string{"Origin: https://door:6443"}, 415},
		{[]string{"Sec-Fetch-Mode: no-cors"}, 415},
		{[]string{"Origin: https://door:6443", "Content-Type: application/json"}, 200},
	} {
		r := sent(t, http.MethodPost, "", c.headers...)
		for _, length := range []int64{2, -1} {
			if r.ContentLength = length; through(t, &Headers{}, r) != c.want {
				t.Errorf("%v: not %d", c.headers, c.want)
			}
		}
		if r.ContentLength = 0; through(t, &Headers{}, r) != 200 {
			t.Errorf("%v: without a body it is refused", c.headers)
		}
	}
}

// TestServiceWorkers: nothing of the host is the script of a service worker.
func TestServiceWorkers(t *testing.T) {
	if got := through(t, &Headers{}, sent(t, http.MethodGet, "", "Service-Worker: script", "Sec-Fetch-Site: same-origin")); got != 403 {
		t.Errorf("got %d", got)
	}
}

// TestConsoleHost: the host of the console serves nothing whose content others choose.
func TestConsoleHost(t *testing.T) {
	h, err := parse(t, "--console-host=console.example")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"Console.Example:6443": 403, "door:6443": 200} {
		r := sent(t, http.MethodGet, "", "Host: "+host)
		r.Extension = true
		if got := through(t, h, r); got != want {
			t.Errorf("an extension by %s: got %d, want %d", host, got, want)
		}
		if got, want := h.ServesConsole(r.Request), host != "door:6443"; got != want {
			t.Errorf("the console by %s: %v", host, got)
		}
	}
	for _, bad := range []string{"--console-host=a:1", "--console-host=https://a", "--browser-hosts=*.a"} {
		if _, err := parse(t, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
