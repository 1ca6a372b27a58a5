package listener

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// opened opens a port with the flags. It accepts connections until the test ends.
func opened(t *testing.T, args ...string) (address string, watched []expiry.Source, err error) {
	t.Helper()
	return openedFor(t, nil, args...)
}

// openedFor opens a port whose handshakes name authorities.
func openedFor(t *testing.T, authorities []string, args ...string) (address string, watched []expiry.Source, err error) {
	t.Helper()
	s := Settings{Authorities: authorities}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(fs)
	if err := fs.Parse(append([]string{"--secure-port=0"}, args...)); err != nil {
		t.Fatal(err)
	}
	l, err := s.Open(slog.New(slog.DiscardHandler), func(f expiry.Source) { watched = append(watched, f) }, nil)
	if err != nil {
		return "", nil, err
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = conn.(*tls.Conn).Handshake() // the client sees the error
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String(), watched, nil
}

func issue(t *testing.T, names ...string) peertls.Files {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func serving(files peertls.Files) []string {
	return []string{"--tls-cert-file=" + files.Cert, "--tls-private-key-file=" + files.Key}
}

// shake returns the state of a connection.
func shake(t *testing.T, address string, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	config.InsecureSkipVerify = true // the tests read the certificate themselves
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

// shown returns the first name of the certificate for a host.
func shown(t *testing.T, address, host string) string {
	t.Helper()
	state, err := shake(t, address, &tls.Config{ServerName: host})
	if err != nil {
		t.Fatal(err)
	}
	return state.PeerCertificates[0].Subject.CommonName
}

func TestVersionsAndCipherSuites(t *testing.T) {
	own := serving(issue(t, "door"))
	const suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	only13, _, err := opened(t, append(own, "--tls-min-version=VersionTLS13")...)
	if err != nil {
		t.Fatal(err)
	}
	byDefault, _, err := opened(t, own...)
	if err != nil {
		t.Fatal(err)
	}
	oneSuite, _, err := opened(t, append(own, "--tls-cipher-suites="+suite)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, address string
		version       uint16
		suites        []uint16
		want          bool
	}{
		{"TLS 1.2 below the minimum", only13, tls.VersionTLS12, nil, false},
		{"TLS 1.3", only13, tls.VersionTLS13, nil, true},
		{"TLS 1.1 by default", byDefault, tls.VersionTLS11, nil, false},
		{"TLS 1.2 by default", byDefault, tls.VersionTLS12, nil, true},
		{"another suite by default", byDefault, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}, true},
		{"the suite", oneSuite, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, true},
		{"another suite", oneSuite, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}, false},
	} {
		_, err := shake(t, c.address, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: c.version, CipherSuites: c.suites})
		if c.want != (err == nil) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestCertificateOfTheHost(t *testing.T) {
	first, second, third := issue(t, "first"), issue(t, "second"), issue(t, "third.example", "also.example")
	pair := func(files peertls.Files) string { return "--tls-sni-cert-key=" + files.Cert + "," + files.Key }
	address, watched, err := opened(t, append(serving(issue(t, "door")),
		pair(first)+":api.example,*.wide.example", pair(second)+":*.example,deep.wide.example,127.0.0.1", pair(third))...)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"api.example": "first", "API.Example.": "first", "a.wide.example": "first", "deep.wide.example": "second", "other.example": "second",
		"third.example": "third.example", "also.example": "third.example", "a.b.wide.example": "door", "door": "door", "elsewhere.org": "door",
		"127.0.0.1": "second", // the client sends no name for an address
	} {
		if got := shown(t, address, host); got != want {
			t.Errorf("%s: got the certificate of %s, want %s", host, got, want)
		}
	}
	if len(watched) != 3 || watched[0].Name != first.Cert {
		t.Errorf("expiry is watched of %v", watched)
	}
	replacement := issue(t, "replacement")
	for from, to := range map[string]string{replacement.Cert: first.Cert, replacement.Key: first.Key} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); shown(t, address, "api.example") != "replacement"; {
		if time.Now().After(end) {
			t.Fatal("the certificate is not reloaded")
		}
	}
}

func TestInvalidFlags(t *testing.T) {
	files := issue(t, "door")
	for _, flag := range []string{
		"--tls-min-version=1.2", "--tls-cipher-suites=RC4", "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
		"--tls-sni-cert-key=" + files.Cert, "--tls-sni-cert-key=" + files.Cert + "," + files.Key + ",x", "--tls-sni-cert-key=" + files.Cert + "," + files.Key + ":",
		"--tls-sni-cert-key=" + files.Cert + "," + files.Key + ":a.*.b", "--tls-sni-cert-key=" + files.Cert + "," + files.Key + ":a b",
		"--tls-sni-cert-key=" + files.Key + "," + files.Cert, "--tls-sni-cert-key=/absent,/absent",
	} {
		name, _, _ := strings.Cut(flag, "=")
		if _, _, err := opened(t, append(serving(files), flag)...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, _, err := opened(t); err == nil || !strings.Contains(err.Error(), "--tls-cert-file") {
		t.Errorf("no certificate: %v", err)
	}
}

// namedBy returns the names of authorities in a handshake.
func namedBy(t *testing.T, address string) (subjects []string) {
	t.Helper()
	if _, err := shake(t, address, &tls.Config{GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		for _, der := range r.AcceptableCAs {
			subjects = append(subjects, string(der))
		}
		return &tls.Certificate{}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(subjects)
	return subjects
}

// authority returns the file of a new authority, and its name as a handshake has it.
func authority(t *testing.T, commonName string) (file, subject string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: commonName}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, string(parsed.RawSubject)
}

// TestAuthoritiesOfClients: a handshake names the authorities of client certificates, follows
// their files, and accepts every certificate, which authn verifies.
func TestAuthoritiesOfClients(t *testing.T) {
	own := serving(issue(t, "door"))
	address, _, err := opened(t, own...)
	if err != nil {
		t.Fatal(err)
	}
	if got := namedBy(t, address); got != nil {
		t.Errorf("without authorities: got %q", got)
	}
	users, first := authority(t, "users")
	proxies, second := authority(t, "proxies")
	if address, _, err = openedFor(t, []string{users, proxies}, own...); err != nil {
		t.Fatal(err)
	}
	if got := namedBy(t, address); !slices.Equal(got, slices.Sorted(slices.Values([]string{first, second}))) {
		t.Errorf("got %q, want %q and %q", got, first, second)
	}
	stranger := issue(t, "stranger")
	pair, err := tls.LoadX509KeyPair(stranger.Cert, stranger.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shake(t, address, &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}); err != nil {
		t.Errorf("the certificate of another authority: %v", err)
	}
	replacement, third := authority(t, "later users")
	content, err := os.ReadFile(replacement)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !slices.Contains(namedBy(t, address), third); {
		if time.Now().After(end) {
			t.Fatal("the authorities are not read again")
		}
	}
	long, _ := authority(t, strings.Repeat("a", maxNamed))
	if address, _, err = openedFor(t, []string{long}, own...); err != nil {
		t.Fatal(err)
	}
	if got := namedBy(t, address); got != nil {
		t.Errorf("names that are too long: got %d bytes", len(got[0]))
	}
	for _, file := range []string{"/absent", issue(t, "door").Key} {
		if _, _, err := openedFor(t, []string{users, file}, own...); err == nil || !strings.Contains(err.Error(), "--client-ca-file") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
