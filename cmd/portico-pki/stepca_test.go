package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smallstep/certificates/authority/config"
	"github.com/smallstep/certificates/authority/provisioner"
	"github.com/smallstep/certificates/ca"
	"go.step.sm/crypto/jose"

	"github.com/portico-platform/portico/internal/pki/command"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// stepCA is a certificate authority of smallstep that runs in this process.
type stepCA struct {
	dir     string
	address string
	root    *x509.Certificate
	stop    func()
}

// startCA starts a step-ca with an intermediate authority below its root, as `step ca init` makes it.
func startCA(t *testing.T) *stepCA {
	t.Helper()
	c := &stepCA{dir: t.TempDir()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	c.address = listener.Addr().String()
	check(t, listener.Close())
	rootKey, key, issuing := newKey(t), newKey(t), newKey(t)
	c.root = sign(t, "root", 1, rootKey, nil, rootKey)
	intermediate := sign(t, "intermediate", 0, key, c.root, rootKey)
	c.write(t, "root.crt", "CERTIFICATE", c.root.Raw)
	c.write(t, "intermediate.crt", "CERTIFICATE", intermediate.Raw)
	c.writeKey(t, "intermediate.key", key)
	c.writeKey(t, "issuer.key", issuing)
	public := &jose.JSONWebKey{Key: issuing.Public(), Algorithm: jose.ES256, Use: "sig"}
	public.KeyID, err = jose.Thumbprint(public)
	check(t, err)
	server, err := ca.New(&config.Config{
		Root: []string{c.path("root.crt")}, IntermediateCert: c.path("intermediate.crt"), IntermediateKey: c.path("intermediate.key"),
		Address: c.address, DNSNames: []string{"127.0.0.1"},
		AuthorityConfig: &config.AuthConfig{Provisioners: provisioner.List{&provisioner.JWK{Type: "JWK", Name: "portico", Key: public}}},
	}, ca.WithQuiet(true))
	check(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Run()
	}()
	c.stop = sync.OnceFunc(func() {
		_ = server.Stop()
		<-ended
	})
	t.Cleanup(c.stop)
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := net.Dial("tcp", c.address)
		if err == nil {
			check(t, conn.Close())
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func (c *stepCA) path(name string) string { return filepath.Join(c.dir, name) }

func (c *stepCA) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	check(t, os.WriteFile(c.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (c *stepCA) writeKey(t *testing.T, name string, key crypto.Signer) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	c.write(t, name, "PRIVATE KEY", der)
}

// use returns the file for --cas with which an authority of the suite is this step-ca.
func (c *stepCA) use(t *testing.T, authority string) string {
	t.Helper()
	sum := sha256.Sum256(c.root.Raw)
	content, err := json.Marshal(map[string]any{authority: map[string]any{
		"type": "stepcas", "certificateAuthority": "https://" + c.address, "certificateAuthorityFingerprint": hex.EncodeToString(sum[:]),
		"certificateIssuer": map[string]any{"type": "jwk", "provisioner": "portico", "key": c.path("issuer.key")},
	}})
	check(t, err)
	file := c.path(authority + ".json")
	check(t, os.WriteFile(file, content, 0o600))
	return file
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

// sign returns the certificate of an authority, which is its own root without a parent.
func sign(t *testing.T, name string, below int, key crypto.Signer, parent *x509.Certificate, by crypto.Signer) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(30 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true, MaxPathLen: below, MaxPathLenZero: below == 0,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	check(t, err)
	cert, err := x509.ParseCertificate(der)
	check(t, err)
	return cert
}

// portico runs portico-pki, and fails the test unless it ends with the status and its output contains a text.
func portico(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if got := command.Main(args, &out, &out); got != status || !strings.Contains(out.String(), want) {
		t.Fatalf("%q: status %d, want %d and %q:\n%s", args, got, status, want, out.String())
	}
}

// service is the identity of a service that runs, which reads its files at each handshake.
func service(t *testing.T, dir, folder, cert string) *peertls.Identity {
	t.Helper()
	file := func(name string) string { return filepath.Join(dir, folder, name) }
	i, err := peertls.Load(peertls.Files{CA: file("peer-ca.crt"), Cert: file(cert + ".crt"), Key: file(cert + ".key")}, slog.New(slog.DiscardHandler))
	check(t, err)
	return i
}

// call connects to a service with the mutual TLS of the suite, and returns the services of the caller.
func call(client, server *peertls.Identity, name string) ([]string, error) {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.ServerConfig("h2"))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	var caller []string
	answer := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			answer <- err
			return
		}
		defer conn.Close()
		secured := conn.(*tls.Conn)
		err = secured.Handshake()
		caller = peertls.Services(secured.ConnectionState())
		answer <- err
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", listener.Addr().String(), client.ClientConfig(name, "h2"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	err = <-answer
	return caller, err
}

// TestStepCA has the certificates of connections between services signed by step-ca, by an intermediate authority
// whose root the services trust.
func TestStepCA(t *testing.T) {
	c := startCA(t)
	dir := filepath.Join(t.TempDir(), "pki")
	portico(t, 0, "created ", "init", "--dir="+dir, "--validity=2h", "--cas="+c.use(t, "peers"))
	portico(t, 0, "store/peer.crt", "inspect", "--dir="+dir)
	authz, store := service(t, dir, "authz", "peer"), service(t, dir, "store", "peer")
	accepted := func() {
		t.Helper()
		if caller, err := call(authz, store, "store"); err != nil || len(caller) != 1 || caller[0] != "authz" {
			t.Errorf("the store accepts %q, %v", caller, err)
		}
	}
	accepted()
	if _, err := call(service(t, dir, "authz", "nats"), store, "store"); err == nil {
		t.Error("the store accepts a certificate of another authority")
	}
	if _, err := call(authz, store, "watch-hub"); err == nil {
		t.Error("authz takes the store for the watch hub")
	}
	if names := authz.Services(); len(names) != 1 || names[0] != "authz" {
		t.Errorf("the certificate is for %q", names)
	}
	before, err := os.ReadFile(filepath.Join(dir, "authz/peer.crt"))
	check(t, err)
	portico(t, 0, "renewed authz/peer.crt", "renew", "--dir="+dir, "--days=1")
	accepted()
	portico(t, 0, "created ", "issue", "authz", "--replace", "--dir="+dir)
	accepted()
	replaced, err := os.ReadFile(filepath.Join(dir, "authz/peer.crt"))
	check(t, err)
	if bytes.Equal(before, replaced) || bytes.Count(replaced, []byte("BEGIN CERTIFICATE")) != 2 {
		t.Errorf("not a new certificate with its intermediate:\n%s", replaced)
	}
	portico(t, 0, "store/peer.crt", "inspect", "--dir="+dir)
	c.stop()
	portico(t, 1, "authority peers", "issue", "authz", "--replace", "--dir="+dir)
	if left, err := os.ReadFile(filepath.Join(dir, "authz/peer.crt")); err != nil || !bytes.Equal(left, replaced) {
		t.Errorf("without the authority, the certificate was changed: %v", err)
	}
	portico(t, 0, "store/peer.crt", "inspect", "--dir="+dir)
	accepted()
}

// TestStepCAThatChangesNames: without a template of its own, step-ca omits the group of the administrator and adds
// the name to the hosts. That is an error, and nothing is left.
func TestStepCAThatChangesNames(t *testing.T) {
	c := startCA(t)
	dir := filepath.Join(t.TempDir(), "pki")
	portico(t, 1, "authority users: the certificate is for", "init", "--dir="+dir, "--validity=2h", "--cas="+c.use(t, "users"))
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); err != nil || len(left) > 0 {
		t.Errorf("it has left %q, %v", left, err)
	}
}
