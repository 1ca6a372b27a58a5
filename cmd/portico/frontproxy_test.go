package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestFrontProxy: by default, only the front door's own client certificate may name users;
// one of another authority or of another name may not.
func TestFrontProxy(t *testing.T) {
	c := start(t, vocabulary.K8s())
	load := func(name string) tls.Certificate {
		pair, err := tls.LoadX509KeyPair(filepath.Join(c.Dir, "pki", name+".crt"), filepath.Join(c.Dir, "pki", name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	proxies, name := load("front-proxy-ca"), "front-proxy-client"
	for _, test := range []struct {
		about string
		pair  tls.Certificate
		user  string
		want  int
	}{
		{"its own", load(name), "jane", http.StatusOK},
		{"its own, without a user", load(name), "", http.StatusUnauthorized},
		{"another name", signed(t, proxies, "front-proxy-client2"), "jane", http.StatusUnauthorized},
		{"no name", signed(t, proxies, ""), "jane", http.StatusUnauthorized},
		{"itself its authority", signed(t, tls.Certificate{}, name), "jane", http.StatusUnauthorized},
		{"the authority of servers", signed(t, load("ca"), name), "jane", http.StatusUnauthorized},
		// A user with this name, not a proxy.
		{"the authority of users", signed(t, load("signing-ca"), name), "jane", http.StatusForbidden},
	} {
		if got := asProxy(t, c, test.pair, test.user); got != test.want {
			t.Errorf("a certificate of %s: got %d, want %d", test.about, got, test.want)
		}
	}
}

// asProxy reads Secrets with a client certificate and headers that name a user with all
// permissions, and returns the code of the response.
func asProxy(t *testing.T, c *cluster.Cluster, pair tls.Certificate, user string) int {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		// Not only what the server asks for.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/api/v1/secrets", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"X-Remote-User": {user}, "X-Remote-Group": {"system:masters"}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// signed returns a client certificate of an authority, or one that signs itself.
func signed(t *testing.T, by tls.Certificate, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if by.Leaf == nil {
		by.Leaf, by.PrivateKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Leaf, key.Public(), by.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
