package webhook_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/webhook"
)

// server is a webhook that counts its connections.
type server struct {
	*httptest.Server
	connections atomic.Int64
	ca          []byte
}

func serve(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{Server: httptest.NewUnstartedServer(h)}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return s
}

func empty(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }

func (s *server) at(path string) webhook.Config {
	address := s.URL + path
	return webhook.Config{URL: &address, CABundle: s.ca}
}

func post(t *testing.T, c *webhook.Client) error {
	t.Helper()
	var reply map[string]any
	return c.Post(t.Context(), map[string]any{}, &reply, webhook.Limits{Timeout: time.Minute, Bytes: 100})
}

// TestClientsShareConnections: webhooks with one target and trust use one connection, also when
// their configuration is read again; a service with the same address has one of its own.
func TestClientsShareConnections(t *testing.T) {
	s := serve(t, empty)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	clients := webhook.NewClients(webhook.Settings{Find: func(context.Context, locate.Reference) (string, error) { return at.Host, nil }})
	first := clients.New(s.at("/a"))
	for range 3 {
		for _, c := range []*webhook.Client{first, clients.New(s.at("/b"))} {
			if err := post(t, c); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections for one target", n)
	}
	other := s.at("/a")
	other.CABundle = append([]byte("another trust\n"), other.CABundle...)
	if err := post(t, clients.New(other)); err != nil {
		t.Fatal(err)
	}
	if n := s.connections.Load(); n != 2 {
		t.Errorf("%d connections, want one more for another trust", n)
	}
	to := intstr.FromInt(port)
	service := webhook.Config{Service: &webhook.Service{Namespace: "here", Name: "hook", Port: &to}, CABundle: s.ca}
	if err := post(t, clients.New(service)); err == nil || !strings.Contains(err.Error(), "hook.here.svc") || s.connections.Load() != 3 {
		t.Errorf("%v, %d connections", err, s.connections.Load())
	}
}

// TestPaths: a webhook is called at its path without empty segments.
func TestPaths(t *testing.T) {
	var called atomic.Value
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		called.Store(r.URL.EscapedPath())
		empty(w, r)
	})
	for given, want := range map[string]string{"": "/", "/a/b": "/a/b", "//validate": "/validate", "/a//b/": "/a/b", "/a%20b": "/a%20b"} {
		if err := post(t, webhook.NewClients(webhook.Settings{}).New(s.at(given))); err != nil || called.Load() != want {
			t.Errorf("%q: %v, called at %v", given, err, called.Load())
		}
	}
}

// TestAnswersAreBounded: no redirect is followed, no large answer is read, and no slow one is
// awaited.
func TestAnswersAreBounded(t *testing.T) {
	elsewhere := serve(t, empty)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/large":
			fmt.Fprintf(w, `{"a":%q}`, strings.Repeat("a", 100))
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("a", 1<<20))
			empty(w, r)
		case "/slow":
			<-r.Context().Done()
		}
	})
	clients := webhook.NewClients(webhook.Settings{})
	for path, want := range map[string]string{"/redirect": "307", "/large": "larger than 100 bytes", "/header": "header", "/slow": "deadline"} {
		limits := webhook.Limits{Timeout: time.Minute, Bytes: 100}
		if path == "/slow" {
			limits.Timeout = time.Second
		}
		var reply map[string]any
		err := clients.New(s.at(path)).Post(t.Context(), nil, &reply, limits)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if elsewhere.connections.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

// TestDeniedNetworks: an address in a denied network is not connected to, whether it is named by
// a URL, a name or a Service.
func TestDeniedNetworks(t *testing.T) {
	s := serve(t, empty)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	networks, err := endpoint.ParseNetworks([]string{"10.0.0.0/8", "127.0.0.0/8", "::1/128"})
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	address := "[::ffff:127.0.0.1]:" + at.Port()
	clients := webhook.NewClients(webhook.Settings{Deny: networks, Find: func(context.Context, locate.Reference) (string, error) { return address, nil }})
	named := "https://localhost:" + at.Port()
	for name, c := range map[string]webhook.Config{"address": s.at(""), "name": {URL: &named, CABundle: s.ca},
		"service": {Service: &webhook.Service{Namespace: "here", Name: "hook"}, CABundle: s.ca}} {
		if err := post(t, clients.New(c)); err == nil || !strings.Contains(err.Error(), "address not allowed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.connections.Load(); n > 0 {
		t.Errorf("%d connections", n)
	}
	other, err := endpoint.ParseNetworks([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	if err := post(t, webhook.NewClients(webhook.Settings{Deny: other}).New(s.at(""))); err != nil {
		t.Errorf("an address in no denied network: %v", err)
	}
}

// TestWrongConfigurations: the first call says what is wrong.
func TestWrongConfigurations(t *testing.T) {
	wrong := "https://%zz"
	fine := "https://127.0.0.1:1"
	clients := webhook.NewClients(webhook.Settings{})
	for want, c := range map[string]webhook.Config{"neither url nor service": {}, "invalid URL escape": {URL: &wrong}, "contains no certificate": {URL: &fine, CABundle: []byte("a")}} {
		if err := post(t, clients.New(c)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
