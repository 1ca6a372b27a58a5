package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// site is a node with a certificate of an authority, which wants one of its clients.
type site struct {
	*testing.T
	server  *httptest.Server
	serving peertls.Files
	config  Config
}

func newSite(t *testing.T, handle http.HandlerFunc) *site {
	t.Helper()
	s := &site{T: t, serving: issue(t, "127.0.0.1")}
	client := issue(t, "client")
	pair, err := tls.LoadX509KeyPair(s.serving.Cert, s.serving.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(read(t, client.CA))
	s.server = httptest.NewUnstartedServer(handle)
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	s.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	s.config = Config{Policy: Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Certificate: client.Cert, Key: client.Key,
		Authority: s.serving.CA, Timeout: 5 * time.Second, Idle: time.Minute, Log: slog.New(slog.DiscardHandler)}
	return s
}

// issue makes an authority and a certificate of it.
func issue(t *testing.T, name string) peertls.Files {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (s *site) transports() *Transports {
	s.Helper()
	transports, err := New(s.config)
	if err != nil {
		s.Fatal(err)
	}
	return transports
}

// get returns the error of a request.
func (s *site) get(over *http.Transport) error {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.server.URL, nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := over.RoundTrip(r)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

// TestCertificates: a node is reached with the client certificate alone, and only if its
// own certificate is of the authority, unless this is not to be verified.
func TestCertificates(t *testing.T) {
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	if err := s.get(s.transports().Node(true)); err != nil {
		t.Error(err)
	}
	if err := s.get(s.transports().Plain); err == nil {
		t.Error("pods are sent the client certificate of nodes")
	}
	right := s.config
	s.config.Authority = issue(t, "other").CA
	if err := s.get(s.transports().Node(true)); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a node of another authority: got %v", err)
	}
	if err := s.get(s.transports().Node(false)); err != nil {
		t.Errorf("without verification: got %v", err)
	}
	s.config.Authority = ""
	if err := s.get(s.transports().Node(true)); err != nil {
		t.Errorf("without an authority: got %v", err)
	}
	for name, change := range map[string]func(*Config){
		"no key":           func(c *Config) { c.Key = "" },
		"no such file":     func(c *Config) { c.Certificate = "/nowhere" },
		"another key":      func(c *Config) { c.Key = s.serving.Key },
		"not an authority": func(c *Config) { c.Authority = c.Key },
	} {
		s.config = right
		change(&s.config)
		if _, err := New(s.config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestIdentityIsAlwaysShown: an extension gets the client certificate also while it names only other
// authorities, as it does until it has read those of front doors.
func TestIdentityIsAlwaysShown(t *testing.T) {
	shown := make(chan int, 1)
	serving, client := issue(t, "ext.ns.svc"), issue(t, "front-proxy-client")
	pair, err := tls.LoadX509KeyPair(serving.Cert, serving.Key)
	if err != nil {
		t.Fatal(err)
	}
	others := x509.NewCertPool()
	others.AppendCertsFromPEM(read(t, serving.Cert)) // authorities of tests have the same name
	s := &site{T: t, config: Config{Policy: Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Timeout: 5 * time.Second, Idle: time.Minute, Log: slog.New(slog.DiscardHandler)}}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown <- len(r.TLS.PeerCertificates) }))
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, ClientCAs: others}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	identity, err := tls.LoadX509KeyPair(client.Cert, client.Key)
	if err != nil {
		t.Fatal(err)
	}
	over, err := s.transports().Extension(Trust{ServerName: "ext.ns.svc", Authorities: read(t, serving.CA), Identity: &identity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(over.CloseIdleConnections)
	if err := s.get(over); err != nil {
		t.Fatal(err)
	}
	if n := <-shown; n == 0 {
		t.Error("no certificate is shown")
	}
}

// TestRenewedCertificate: a client certificate that is replaced is used without a
// restart.
func TestRenewedCertificate(t *testing.T) {
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	wrong, right := issue(t, "wrong"), s.config
	s.config.Certificate, s.config.Key = wrong.Cert, wrong.Key
	transports := s.transports()
	if err := s.get(transports.Node(true)); err == nil {
		t.Fatal("a certificate of another authority is accepted")
	}
	for from, to := range map[string]string{right.Certificate: wrong.Cert, right.Key: wrong.Key} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Clean(to), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(10 * time.Second)
	for s.get(transports.Node(true)) != nil {
		select {
		case <-deadline:
			t.Fatal("the new certificate is not used")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestRefusedWhenDialled: a name that resolves to an address that is refused is not
// reached.
func TestRefusedWhenDialled(t *testing.T) {
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	s.config.Policy = Policy{}
	_, port, _ := net.SplitHostPort(s.server.Listener.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"} {
		s.server.URL = "https://" + host + ":" + port
		if err := s.get(s.transports().Node(false)); err == nil || !strings.Contains(err.Error(), "address not allowed") {
			t.Errorf("%s: got %v", host, err)
		}
	}
}

// TestUpgradeLimits: a backend that does not answer, answers without end or falls silent
// later does not keep its connection.
func TestUpgradeLimits(t *testing.T) {
	for name, c := range map[string]struct {
		answer         string
		idle, patience time.Duration
		want           string
	}{
		"late":   {"", time.Minute, time.Second, errLateHeader.Error()},
		"long":   {"HTTP/1.1 101 Switching\r\n" + strings.Repeat("A: b\r\n", 20_000), time.Minute, time.Minute, errLongHeader.Error()},
		"silent": {"HTTP/1.1 101 Switching\r\n\r\n", 3 * time.Second, time.Minute, "i/o timeout"},
	} {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, c.answer)
			_, _ = io.Copy(io.Discard, conn) // until the other side closes
			_ = conn.Close()
		})
		s.config.Idle = c.idle
		to, _ := url.Parse(s.server.URL)
		upgrade, err := dial(t.Context(), s.transports().Node(true), to, upgrading{func(_ int, h http.Header) http.Header { return h }, c.patience})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := upgrade.Transport().DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := upgrade.Transport().DialContext(t.Context(), "", ""); err == nil {
			t.Errorf("%s: the connection is used twice", name)
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := io.ReadAll(conn); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		upgrade.Close()
	}
}
