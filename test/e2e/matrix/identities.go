package matrix

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Identities are those who know users besides the suite: authorities of certificates, an OpenID
// Connect issuer and a token webhook.
type Identities struct {
	users, proxies, strangers authority
	issuer                    *httptest.Server
	key                       *rsa.PrivateKey // of the issuer
	flags                     []string
}

// The users that the webhook and the token file know by their tokens.
const (
	staticToken, otherToken, hookToken, hookElsewhere = "static-token-of-sam", "static-token-of-otto", "hook-token-of-wendy", "hook-token-for-others"
)

// New starts the issuer and the webhook.
func New(t *testing.T) *Identities {
	t.Helper()
	i := &Identities{users: newAuthority(t, "users"), proxies: newAuthority(t, "proxies"), strangers: newAuthority(t, "users")}
	var err error
	if i.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	issuer := http.NewServeMux()
	i.issuer = httptest.NewTLSServer(issuer)
	t.Cleanup(i.issuer.Close)
	answer := func(path string, value any) {
		issuer.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(value) // the client may be gone
		})
	}
	answer("/.well-known/openid-configuration", map[string]any{"issuer": i.issuer.URL, "jwks_uri": i.issuer.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		"authorization_endpoint": i.issuer.URL + "/auth"})
	answer("/keys", map[string]any{"keys": []any{map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "first",
		"n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes())}}})
	hook := httptest.NewTLSServer(http.HandlerFunc(webhook))
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate := func(s *httptest.Server) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	}
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}],
		"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}]}`, hook.URL, base64.StdEncoding.EncodeToString([]byte(certificate(hook))))
	i.flags = []string{"--oidc-issuer-url=" + i.issuer.URL, "--oidc-client-id=portico", "--oidc-username-prefix=-", "--oidc-ca-file=" + file("issuer.crt", certificate(i.issuer)),
		"--authentication-token-webhook-config-file=" + file("webhook.kubeconfig", config), "--authentication-token-webhook-version=v1", "--enable-bootstrap-token-auth",
		"--token-auth-file=" + file("tokens.csv", staticToken+",sam,1\n"+otherToken+",otto,2\n")}
	return i
}

// Flags are those of authn. The authorities are added to files of others, by Trust.
func (i *Identities) Flags() []string { return i.flags }

// Trust adds the authority to the file of client-ca-file or requestheader-client-ca-file.
func (i *Identities) Trust(t *testing.T, flag, file string) {
	t.Helper()
	added := map[string]authority{"client-ca-file": i.users, "requestheader-client-ca-file": i.proxies}[flag]
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content = append(content, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: added.certificate.Raw})...)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// webhook answers TokenReviews.
func webhook(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion, Kind string
		Spec             struct {
			Token     string
			Audiences []string
		}
	}
	if json.NewDecoder(r.Body).Decode(&review) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	status := map[string]any{"authenticated": false}
	switch review.Spec.Token {
	case hookToken:
		status = map[string]any{"authenticated": true, "user": map[string]any{"username": "wendy"}, "audiences": review.Spec.Audiences}
	case hookElsewhere:
		status = map[string]any{"authenticated": true, "user": map[string]any{"username": "wendy"}, "audiences": []string{"elsewhere"}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "status": status}) // the client may be gone
}

// authority signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{certificate: &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}, key: newKey(t)}
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a client certificate after a change of its template and of its bytes.
func (a authority) issue(t *testing.T, name string, change func(*x509.Certificate), spoil func([]byte) []byte) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour)}
	if change != nil {
		change(template)
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if spoil != nil {
		der = spoil(der)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// sign returns a token with a signature of a key.
func sign(t *testing.T, key crypto.Signer, header, claims map[string]any) string {
	t.Helper()
	var parts []string
	for _, part := range []map[string]any{header, claims} {
		raw, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, encode(raw))
	}
	text := strings.Join(parts, ".")
	h := crypto.SHA256.New()
	h.Write([]byte(text))
	if pair, ok := key.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, pair, h.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		const size = 32
		return text + "." + encode(append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...))
	}
	signature, err := key.Sign(rand.Reader, h.Sum(nil), crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(signature)
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
