package matrix

import (
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// The rows of the table of authenticators.
const (
	valid      = "valid"
	expired    = "expired"
	early      = "not yet valid"
	issuer     = "another issuer"
	audience   = "another audience or purpose"
	signature  = "broken signature or secret"
	algorithm  = "another algorithm"
	keyID      = "another key ID"
	truncated  = "truncated"
	empty      = "empty"
	long       = "100 KB long"
	repeated   = "followed by one of otto"
	preceded   = "preceded by a wrong one"
	mixed      = "beside a valid one of another method"
	mixedWrong = "beside a wrong one of another method"
)

var conditions = []string{valid, expired, early, issuer, audience, signature, algorithm, keyID, truncated, empty, long, repeated, preceded, mixed, mixedWrong}

// attempt is what a client shows. Headers are lines as they are sent.
type attempt struct {
	headers     []string
	certificate *tls.Certificate
}

// authenticator is a column: its attempts by condition. Conditions that it does not have are
// absent.
type authenticator struct {
	name     string
	attempts map[string]attempt
}

// authenticators returns the columns, in the order in which authn asks the methods.
func (s *scene) authenticators(t *testing.T) []authenticator {
	t.Helper()
	return []authenticator{
		{"front proxy", s.namedByProxy(t)},
		{"client certificate", s.certificates(t, s.users, "alice")},
		{"static token", s.bearers(t, map[string]string{valid: staticToken, signature: staticToken[:len(staticToken)-1] + "x"})},
		{"service account token", s.bearers(t, s.accountTokens(t))},
		{"bootstrap token", s.bearers(t, s.bootstrapTokens(t))},
		{"OpenID Connect", s.bearers(t, s.idTokens(t))},
		{"webhook", s.bearers(t, map[string]string{valid: hookToken, audience: hookElsewhere, signature: hookToken + "x"})},
		{"none", map[string]attempt{valid: {}}},
	}
}

// namedByProxy returns the attempts of a front proxy: with its certificates, and with names.
func (s *scene) namedByProxy(t *testing.T) map[string]attempt {
	t.Helper()
	attempts := s.certificates(t, s.proxies, s.ProxyName, "X-Remote-User: pat")
	certificate := attempts[valid].certificate
	attempts[empty] = attempt{[]string{"X-Remote-User:"}, certificate}
	attempts[long] = attempt{[]string{"X-Remote-User: pat" + strings.Repeat("e", 100_000)}, certificate}
	attempts[repeated] = attempt{[]string{"X-Remote-User: pat", "X-Remote-User: otto"}, certificate}
	attempts[preceded] = attempt{[]string{"X-Remote-User:", "X-Remote-User: pat"}, certificate}
	return attempts
}

// certificates returns the attempts with certificates of an authority, and headers.
func (s *scene) certificates(t *testing.T, ca authority, name string, headers ...string) map[string]attempt {
	t.Helper()
	attempts := map[string]attempt{}
	add := func(condition string, certificate tls.Certificate, more ...string) {
		attempts[condition] = attempt{append(append([]string{}, headers...), more...), &certificate}
	}
	issue := func(change func(*x509.Certificate)) tls.Certificate { return ca.issue(t, name, change, nil) }
	other := s.strangers
	other.certificate = &x509.Certificate{RawSubject: ca.certificate.RawSubject, SubjectKeyId: ca.certificate.SubjectKeyId, PublicKey: other.key.Public()}
	add(valid, issue(nil))
	add(expired, issue(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }))
	add(early, issue(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }))
	add(issuer, s.strangers.issue(t, name, nil, nil))
	add(signature, other.issue(t, name, nil, nil))
	add(audience, issue(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }))
	add(algorithm, issue(func(c *x509.Certificate) { c.SignatureAlgorithm = x509.ECDSAWithSHA1 }))
	named := ca
	copied := *ca.certificate
	copied.SubjectKeyId = []byte("another key")
	named.certificate = &copied
	add(keyID, named.issue(t, name, nil, nil))
	add(truncated, ca.issue(t, name, nil, func(der []byte) []byte { return der[:len(der)/2] }))
	add(long, issue(func(c *x509.Certificate) { c.Subject.CommonName = name + strings.Repeat("e", 100_000) }))
	two := issue(nil)
	two.Certificate = append(two.Certificate, ca.issue(t, "otto", nil, nil).Certificate...)
	add(repeated, two)
	add(mixed, issue(nil), "Authorization: Bearer "+otherToken)
	add(mixedWrong, issue(nil), "Authorization: Bearer wrong")
	attempts[empty] = attempt{headers: headers}
	return attempts
}

// bearers returns the attempts with tokens, and those that can be made with any valid token.
func (s *scene) bearers(t *testing.T, tokens map[string]string) map[string]attempt {
	t.Helper()
	good := tokens[valid]
	tokens[truncated], tokens[empty], tokens[long] = good[:len(good)*2/3], "", good+strings.Repeat("a", 100_000)
	attempts := map[string]attempt{}
	for condition, token := range tokens {
		attempts[condition] = attempt{headers: []string{"Authorization: Bearer " + token}}
	}
	attempts[repeated] = attempt{headers: []string{"Authorization: Bearer " + good, "Authorization: Bearer " + otherToken}}
	attempts[preceded] = attempt{headers: []string{"Authorization: Bearer wrong", "Authorization: Bearer " + good}}
	alice, stranger := s.users.issue(t, "alice", nil, nil), s.strangers.issue(t, "alice", nil, nil)
	attempts[mixed] = attempt{[]string{"Authorization: Bearer " + good}, &alice}
	attempts[mixedWrong] = attempt{[]string{"Authorization: Bearer " + good}, &stranger}
	return attempts
}

// tokenCase changes the header and the claims of a valid token.
type tokenCase func(header, claims map[string]any)

// signed returns a valid token with changes, signed by a key.
func signed(t *testing.T, key crypto.Signer, header, claims map[string]any) map[string]string {
	t.Helper()
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	tokens := map[string]string{}
	for condition, change := range map[string]tokenCase{
		expired: func(_, c map[string]any) {
			c["exp"], c["iat"], c["nbf"] = at(-10*time.Minute), at(-time.Hour), at(-time.Hour)
		},
		early:    func(_, c map[string]any) { c["nbf"] = at(30 * time.Minute) },
		issuer:   func(_, c map[string]any) { c["iss"] = "https://other.example.com" },
		audience: func(_, c map[string]any) { c["aud"] = []string{"elsewhere"} },
		keyID:    func(h, _ map[string]any) { h["kid"] = "another" },
	} {
		h, c := maps.Clone(header), maps.Clone(claims)
		change(h, c)
		tokens[condition] = sign(t, key, h, c)
	}
	good := sign(t, key, header, claims)
	tokens[signature] = good[:len(good)-12] + "AAAAAAAAAAAA"
	// The public key as the secret of a symmetric algorithm.
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	text := encode([]byte(`{"alg":"HS256"}`)) + "." + strings.Split(good, ".")[1]
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	mac.Write([]byte(text))
	tokens[algorithm] = text + "." + encode(mac.Sum(nil))
	return tokens
}

// idTokens returns tokens of the OpenID Connect issuer.
func (s *scene) idTokens(t *testing.T) map[string]string {
	t.Helper()
	now := time.Now()
	header := map[string]any{"alg": "RS256", "kid": "first"}
	claims := map[string]any{"iss": s.issuer.URL, "aud": "portico", "sub": "olga", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	tokens := signed(t, s.key, header, claims)
	tokens[valid] = sign(t, s.key, header, claims)
	return tokens
}

// accountTokens returns a token of a service account, and others that its key has signed.
func (s *scene) accountTokens(t *testing.T) map[string]string {
	t.Helper()
	path := "/api/v1/namespaces/default/serviceaccounts"
	s.must(t, http.MethodPost, path, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"matrix"}}`)
	var answer struct{ Status struct{ Token string } }
	s.must(t, http.MethodPost, path+"/matrix/token", fmt.Sprintf(`{"apiVersion":%q,"kind":"TokenRequest","spec":{}}`, s.Admin.Vocabulary.Group("authentication.")+"/v1")).Decode(t, &answer)
	content, err := os.ReadFile(filepath.Join(s.Admin.Dir, "pki", "serving.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	var key any
	if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		if key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	parts := strings.Split(answer.Status.Token, ".")
	var decoded [2]map[string]any
	for i := range decoded {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(raw, &decoded[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tokens := signed(t, key.(crypto.Signer), decoded[0], decoded[1])
	tokens[valid] = answer.Status.Token
	return tokens
}

// bootstrapTokens returns tokens with their Secrets.
func (s *scene) bootstrapTokens(t *testing.T) map[string]string {
	t.Helper()
	const secret = "0123456789abcdef"
	system := s.Admin.Vocabulary.Namespace("system")
	add := func(id, data string) string {
		s.must(t, http.MethodPost, "/api/v1/namespaces/"+system+"/secrets", fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bootstrap-token-%s"},"type":%q,
			"stringData":{"token-id":%q,"token-secret":%q%s}}`, id, s.Admin.Vocabulary.Qualified("bootstrap", "token"), id, secret, data))
		return id + "." + secret
	}
	const usage = `,"usage-bootstrap-authentication":"true"`
	good := add("matrix", usage)
	return map[string]string{valid: good, expired: add("matri1", usage+`,"expiration":"2020-01-01T00:00:00Z"`), audience: add("matri2", `,"usage-bootstrap-signing":"true"`),
		signature: good[:len(good)-1] + "0", keyID: "matri3." + secret}
}

// must sends a request of the administrator that succeeds.
func (s *scene) must(t *testing.T, method, path, body string) cluster.Answer {
	t.Helper()
	a := s.Admin.Ask(t, cluster.Request{Method: method, Path: path, Body: body})
	if a.Code >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, a.Code, a.Body)
	}
	return a
}
