package webhook_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/ledger"
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
	return c.Post(t.Context(), map[string]any{}, &reply, webhook.Limits{Timeout: time.Minute, Text: ledger.Text{Name: "the response", Bytes: 100, Values: 50}})
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
		case "/values":
			fmt.Fprintf(w, `{"a":[%s1]}`, strings.Repeat("1,", 40))
			fmt.Fprint(w, strings.Repeat(",", 10))
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("a", 1<<20))
			empty(w, r)
		case "/slow":
			<-r.Context().Done()
		}
	})
	clients := webhook.NewClients(webhook.Settings{})
	for path, want := range map[string]string{"/redirect": "307", "/large": "more than 100 bytes", "/values": "more than 50 values", "/header": "header", "/slow": "deadline"} {
		limits := webhook.Limits{Timeout: time.Minute, Text: ledger.Text{Name: "the response", Bytes: 100, Values: 50}}
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

// TestCallsAreBounded: a webhook that is called by its own requests, and so never answers, is called only so many times
// at once, by whatever configuration. Others are called meanwhile.
func TestCallsAreBounded(t *testing.T) {
	const most = 1000
	clients := webhook.NewClients(webhook.Settings{})
	var deepest, depth atomic.Int64
	var s *server
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/loop" {
			empty(w, r)
			return
		}
		deepest.Store(max(deepest.Load(), depth.Add(1)))
		defer depth.Add(-1)
		if err := post(t, clients.New(s.at("/loop"))); err != nil { // what a write to the API would cause
			w.WriteHeader(http.StatusServiceUnavailable)
			if depth.Load() == most {
				if err := post(t, clients.New(s.at("/other"))); err != nil {
					t.Errorf("another webhook: %v", err)
				}
				if !errors.As(err, new(*ledger.FullError)) {
					t.Errorf("the error is %v", err)
				}
			}
			return
		}
		empty(w, r)
	})
	if err := post(t, clients.New(s.at("/loop"))); err == nil {
		t.Error("the loop has ended by itself")
	}
	if n := deepest.Load(); n != most {
		t.Errorf("%d calls at once, want %d", n, most)
	}
	if err := post(t, clients.New(s.at("/other"))); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestResponsesAreCharged: responses in progress take the share of their webhook, and no other's.
func TestResponsesAreCharged(t *testing.T) {
	book, begun, end := ledger.New(4<<20), make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			fmt.Fprintf(w, `{"a":%q`, strings.Repeat("a", 400<<10))
			_ = http.NewResponseController(w).Flush()
			begun <- struct{}{}
			<-end
			fmt.Fprint(w, "}")
			return
		}
		empty(w, r)
	})
	clients := webhook.NewClients(webhook.Settings{Ledger: book})
	ask := func(path string) error {
		var reply map[string]any
		return clients.New(s.at(path)).Post(t.Context(), nil, &reply, webhook.Limits{Timeout: time.Minute, Text: ledger.AdmissionAnswer})
	}
	var all sync.WaitGroup
	var full atomic.Int64
	for range 3 {
		all.Go(func() {
			if errors.As(ask("/large"), new(*ledger.FullError)) {
				full.Add(1)
			}
		})
	}
	for range 3 {
		<-begun
	}
	if err := ask("/other"); err != nil {
		t.Errorf("another webhook: %v", err)
	}
	close(end)
	all.Wait()
	if full.Load() == 0 {
		t.Error("all responses were held at once")
	}
	if book.Held() != 0 {
		t.Errorf("%d bytes stay charged", book.Held())
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

// TestPortsOfTheSuite: a port that the process refuses is not connected to, however it is named.
func TestPortsOfTheSuite(t *testing.T) {
	s := serve(t, empty)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	clients := webhook.NewClients(webhook.Settings{Refused: func(to netip.AddrPort) bool { return strconv.Itoa(int(to.Port())) == at.Port() },
		Find: func(context.Context, locate.Reference) (string, error) { return at.Host, nil }})
	named := "https://localhost:" + at.Port()
	for name, c := range map[string]webhook.Config{"address": s.at(""), "name": {URL: &named, CABundle: s.ca},
		"service": {Service: &webhook.Service{Namespace: "here", Name: "hook"}, CABundle: s.ca}} {
		if err := post(t, clients.New(c)); err == nil || !strings.Contains(err.Error(), "is a port of the suite") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.connections.Load(); n > 0 {
		t.Errorf("%d connections", n)
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
