package console

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// issuer is an OpenID Connect issuer with one user, who has always logged in.
type issuer struct {
	*httptest.Server
	key       *rsa.PrivateKey
	challenge string // of the last authorization
	nonce     string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("code") != "good" || challengeOf(r.FormValue("code_verifier")) != i.challenge {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]string{"error": "invalid_grant"})
			return
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.sign(t)})
	})
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) sign(t *testing.T) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	if err != nil {
		t.Error(err)
		return ""
	}
	token, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: i.URL, Subject: "jane", Audience: jwt.Audience{"console"}, Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour))}).Claims(map[string]any{"nonce": i.nonce}).Serialize()
	if err != nil {
		t.Error(err)
	}
	return token
}

func withIssuer(t *testing.T, i *issuer) *Console {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse(t, "--console-oidc-issuer-url="+i.URL, "--console-oidc-client-id=console", "--console-oidc-ca-file="+ca)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// begin asks for a login and returns the state and the cookie.
func (i *issuer) begin(t *testing.T, c *Console) (state string, kept *http.Cookie) {
	t.Helper()
	w, _ := ask(c, httptest.NewRequest("GET", "https://front.door/console/login", nil))
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther || !strings.HasPrefix(to.String(), i.URL+"/auth?") {
		t.Fatalf("the login: %d %q %v %s", w.Code, to, err, w.Body)
	}
	q := to.Query()
	if q.Get("redirect_uri") != "https://front.door/console/" || q.Get("code_challenge_method") != "S256" || q.Get("client_id") != "console" {
		t.Errorf("the question to the issuer: %v", q)
	}
	i.challenge, i.nonce = q.Get("code_challenge"), q.Get("nonce")
	kept = w.Result().Cookies()[0]
	if !strings.HasPrefix(kept.Name, "__Host-") || kept.Path != "/" || kept.Domain != "" || !kept.Secure || !kept.HttpOnly || kept.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie: %v", kept)
	}
	return q.Get("state"), kept
}

func exchange(c *Console, body string, kept *http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "https://front.door/console/token", strings.NewReader(body))
	if kept != nil {
		r.AddCookie(kept)
	}
	w, _ := ask(c, r)
	return w
}

// TestLogin: the code of a login becomes a token in the browser that has begun it, at any
// front door, and nowhere else.
func TestLogin(t *testing.T) {
	i := newIssuer(t)
	c := withIssuer(t, i)
	state, kept := i.begin(t, c)
	good := `{"code":"good","state":"` + state + `"}`
	for name, refused := range map[string]struct {
		body string
		kept *http.Cookie
	}{
		"no cookie":           {good, nil},
		"another state":       {`{"code":"good","state":"x"}`, kept},
		"no state":            {`{"code":"good"}`, kept},
		"no code":             {`{"state":"` + state + `"}`, kept},
		"no JSON":             {`code=good&state=` + state, kept},
		"a body without end":  {strings.Repeat(" ", 1<<20) + good, kept},
		"a cookie of two":     {good, &http.Cookie{Name: loginCookie, Value: state + ".x"}},
		"an empty cookie":     {`{"code":"good","state":""}`, &http.Cookie{Name: loginCookie}},
		"a code that is not":  {`{"code":"bad","state":"` + state + `"}`, kept},
		"another one's nonce": {good, &http.Cookie{Name: loginCookie, Value: strings.Replace(kept.Value, i.nonce, "x", 1)}},
	} {
		if w := exchange(c, refused.body, refused.kept); w.Code < 400 || strings.Contains(w.Body.String(), "token\"") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	other := withIssuer(t, i)
	w := exchange(other, good, kept)
	var answer struct{ Token string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 || strings.Count(answer.Token, ".") != 2 {
		t.Errorf("the exchange: %d %s", w.Code, w.Body)
	}
	if w.Header().Get("Cache-Control") != "no-store" || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("the exchange leaves something behind: %v", w.Header())
	}
}

// TestIssuerAway: a login fails with a reason while the issuer is away, and works after.
func TestIssuerAway(t *testing.T) {
	i := newIssuer(t)
	c := withIssuer(t, i)
	handler := i.Config.Handler
	i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	if w, _ := ask(c, httptest.NewRequest("GET", "https://front.door/console/login", nil)); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "cannot be reached") {
		t.Errorf("the login: %d %s", w.Code, w.Body)
	}
	i.Config.Handler = handler
	i.begin(t, c)
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
