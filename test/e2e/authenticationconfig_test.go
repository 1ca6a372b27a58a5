package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// issuersFile is a file of --authentication-config.
type issuersFile struct {
	vocabulary vocabulary.Vocabulary
	path       string
	one, two   tokenIssuer
}

// newIssuersFile writes a file with the first of two issuers, and the health checks as the only
// anonymous requests.
func newIssuersFile(t *testing.T, v vocabulary.Vocabulary) issuersFile {
	t.Helper()
	f := issuersFile{vocabulary: v, path: filepath.Join(t.TempDir(), "authentication"), one: newTokenIssuer(t), two: newTokenIssuer(t)}
	f.write(t, f.one)
	return f
}

func (f issuersFile) write(t *testing.T, i tokenIssuer) {
	t.Helper()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
	content := fmt.Sprintf("apiVersion: %s/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}, {path: /healthz}]}\n"+
		"jwt:\n- issuer: {url: %q, audiences: [portico], certificateAuthority: %q}\n  claimMappings: {username: {expression: '\"corp:\" + claims.sub'}}\n"+
		"  userValidationRules: [{expression: \"user.username != 'corp:root'\"}]\n", f.vocabulary.Group("apiserver.config."), i.URL, ca)
	if err := os.WriteFile(f.path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaced replaces the issuer while its tokens are used.
func (f issuersFile) replaced(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	with := func(token string) cluster.Answer {
		caller := *c
		caller.Token = token
		return caller.Ask(t, cluster.Request{Path: secretsPath})
	}
	ann := func(i tokenIssuer) string {
		return fmt.Sprint(with(i.token(t, "ann")).Code)
	}
	eventually(t, "tokens of the issuer are accepted", func() bool {
		a := with(f.one.token(t, "ann"))
		return a.Code == http.StatusForbidden && strings.Contains(a.Body, `User \"corp:ann\"`)
	})
	for who, token := range map[string]string{"a user who is excluded": f.one.token(t, "root"), "a token of another issuer": f.two.token(t, "ann"),
		"a token with the key of another issuer": tokenIssuer{f.one.Server, f.two.key}.token(t, "ann"), "anonymous": ""} {
		if a := with(token); a.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", who, a.Code, a.Body)
		}
	}
	nobody := *c
	nobody.Token = ""
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusOK, "/version": http.StatusUnauthorized, "/livez/ping": http.StatusUnauthorized} {
		if a := nobody.Ask(t, cluster.Request{Path: path}); a.Code != want {
			t.Errorf("anonymous %s: %d %s", path, a.Code, a.Body)
		}
	}
	f.write(t, f.two)
	eventually(t, "tokens of the new issuer are accepted, those of the former one are not", func() bool {
		return ann(f.two) == "403" && ann(f.one) == "401"
	})
}

// tokenIssuer is an issuer of ID tokens.
type tokenIssuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newTokenIssuer(t *testing.T) tokenIssuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := tokenIssuer{key: key}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var document any = map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
		if r.URL.Path == "/keys" {
			document = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: "sig"}}}
		}
		_ = json.NewEncoder(w).Encode(document) // the client sees a broken answer
	}))
	t.Cleanup(i.Close)
	return i
}

// token returns a token for a user.
func (i tokenIssuer) token(t *testing.T, user string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{"iss": i.URL, "aud": "portico", "sub": user, "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
