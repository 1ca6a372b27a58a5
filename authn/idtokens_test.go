package authn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/portico-platform/portico/services"
)

const configHead = "apiVersion: apiserver.config.platform.io/v1\nkind: AuthenticationConfiguration\n"

// provider is an issuer of ID tokens.
type provider struct {
	*httptest.Server
	key  *ecdsa.PrivateKey
	keys atomic.Int32  // requests for its keys
	slow chan struct{} // if not nil, only the first request for the keys is answered before it is closed
}

// newProvider starts an issuer, whose key has the same ID as those of all others.
func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{key: newKey(t)}
	mux := http.NewServeMux()
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, p.URL, p.URL+"/keys") // the client sees a broken answer
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		if p.keys.Add(1) > 1 && p.slow != nil {
			<-p.slow
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k", Use: "sig"}}})
	})
	return p
}

// handle adds a path to the issuer.
func (p *provider) handle(path string, body func(*http.Request) string) {
	p.Config.Handler.(*http.ServeMux).HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(body(r))) // the client sees a broken answer
	})
}

// raw signs a payload.
func (p *provider) raw(t testing.TB, keyID, payload string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: keyID}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	object, err := signer.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	token, err := object.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// token signs the claims of a valid token with some others, of which null removes one.
func (p *provider) token(t *testing.T, others string) string {
	t.Helper()
	return p.raw(t, "k", p.payload(t, others))
}

func (p *provider) payload(t *testing.T, others string) string {
	t.Helper()
	claims := map[string]any{"iss": p.URL, "aud": "me", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix()}
	if err := json.Unmarshal([]byte(others), &claims); err != nil {
		t.Fatal(err)
	}
	for name, value := range claims {
		if value == nil {
			delete(claims, name)
		}
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return string(payload)
}

// entry is the entry of the issuer in a file, with more fields.
func (p *provider) entry(more string) string {
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
	return fmt.Sprintf("- issuer: {url: %q, audiences: [me, us], audienceMatchPolicy: MatchAny, certificateAuthority: %q}\n", p.URL, ca) + more
}

// ask authenticates a token.
func ask(t *testing.T, a services.Authn, token string) (services.Authentication, error) {
	t.Helper()
	return a.Authenticate(t.Context(), services.Credentials{BearerToken: token})
}

const expressions = `  claimMappings:
    username: {expression: 'claims.preferred.name'}
    groups: {expression: 'dyn(claims.?roles.orValue([])).filter(r, r != "none")'}
    uid: {expression: 'claims.sub'}
    extra:
    - {key: example.org/team, valueExpression: 'claims.?a__dot__b.team.orValue("")'}
  claimValidationRules:
  - {expression: '!has(claims.nested) || dyn(claims.nested).all(a, dyn(claims.nested).all(b, dyn(claims.nested).all(c, dyn(claims.nested).all(d, a + b + c + d > 0.0))))', message: too deep}
  - {expression: 'claims.exp - claims.?iat.orValue(claims.exp) <= 86400.0', message: valid for too long}
  userValidationRules:
  - {expression: '!user.username.startsWith("system:")', message: reserved}
`

// TestAuthenticationConfiguration: tokens of two issuers are mapped as the file says, and no one
// else gets in.
func TestAuthenticationConfiguration(t *testing.T) {
	one, two := newProvider(t), newProvider(t)
	a := started(t, "--authentication-config="+write(t, configHead+"jwt:\n"+one.entry(expressions)+
		two.entry("  claimMappings: {username: {claim: sub, prefix: 'two:'}, groups: {claim: roles, prefix: 'two-'}, uid: {claim: jti}}\n  claimValidationRules: [{claim: tenant, requiredValue: blue}]\n")))
	mine := `"preferred":{"name":"ann@one"},"jti":"t1"`
	got, err := awaitToken(t, a, services.Credentials{BearerToken: one.token(t, `{`+mine+`,"roles":["dev","none"],"aud":["you","us"],"a.b":{"team":["x"]},"nbf":`+fmt.Sprint(time.Now().Add(30*time.Second).Unix())+`}`)})
	if err != nil || got.User.Name != "ann@one" || got.User.UID != "ann" || strings.Join(got.User.Groups, " ") != "dev system:authenticated" ||
		!slices.Equal(got.User.Extra["example.org/team"], []string{"x"}) || !slices.Equal(got.User.Extra["authentication.platform.io/credential-id"], []string{"JTI=t1"}) ||
		got.CacheFor <= 0 || got.CacheFor > 10*time.Second || got.Credential.TokenID != "t1" || got.Credential.KeyID != "k" || got.Credential.Expires.IsZero() {
		t.Errorf("of the first issuer: %+v, %v", got, err)
	}
	got, err = awaitToken(t, a, services.Credentials{BearerToken: two.token(t, `{"roles":"dev","tenant":"blue","jti":"7"}`)})
	if err != nil || got.User.Name != "two:ann" || got.User.UID != "7" || strings.Join(got.User.Groups, " ") != "two-dev system:authenticated" {
		t.Errorf("of the second issuer: %+v, %v", got, err)
	}
	unsigned := func(head string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(one.payload(t, `{`+mine+`}`))) + "."
	}
	public := elliptic.MarshalCompressed(elliptic.P256(), one.key.X, one.key.Y)
	for what, token := range map[string]string{
		"signed with the key of another issuer": two.raw(t, "k", one.payload(t, `{`+mine+`}`)),
		"with no signature":                     unsigned(`{"alg":"none"}`),
		"with a signature of its public key":    signedWith(t, jose.HS256, append(public, make([]byte, 32)...), map[string]any{"iss": one.URL, "aud": "me", "exp": time.Now().Add(time.Hour).Unix()}),
		"of an issuer with a slash more":        one.token(t, `{`+mine+`,"iss":"`+one.URL+`/"}`),
		"without an end":                        one.token(t, `{`+mine+`,"exp":null}`),
		"expired":                               one.token(t, `{`+mine+`,"exp":1}`),
		"not valid yet":                         one.token(t, `{`+mine+`,"nbf":`+fmt.Sprint(time.Now().Add(time.Hour).Unix())+`}`),
		"not valid for three minutes":           one.token(t, `{`+mine+`,"nbf":`+fmt.Sprint(time.Now().Add(3*time.Minute).Unix())+`}`),
		"not valid for a while, as a fraction":  one.token(t, `{`+mine+`,"nbf":`+fmt.Sprint(time.Now().Add(3*time.Minute).Unix())+`.5}`),
		"for others":                            one.token(t, `{`+mine+`,"aud":"you"}`),
		"for no one":                            one.token(t, `{`+mine+`,"aud":null}`),
		"with a claim twice":                    one.raw(t, "k", `{"sub":"x",`+one.payload(t, `{`+mine+`}`)[1:]),
		"with a member of a claim twice":        one.raw(t, "k", `{"roles":{"a":1,"a":2},`+one.payload(t, `{`+mine+`}`)[1:]),
		"for others, in capitals for us":        one.raw(t, "k", `{"AUD":"me",`+one.payload(t, `{`+mine+`,"aud":"you"}`)[1:]),
		"expired, but not in capitals":          one.token(t, `{`+mine+`,"exp":1,"eXp":`+fmt.Sprint(time.Now().Add(time.Hour).Unix())+`}`),
		"larger than any":                       one.token(t, `{`+mine+`,"more":"`+strings.Repeat("x", 64<<10)+`"}`),
		"of a reserved user":                    one.token(t, `{"preferred":{"name":"system:admin"}}`),
		"without a name":                        one.token(t, `{"preferred":{"name":""}}`),
		"with a name that is no string":         one.token(t, `{"preferred":{"name":["a"]}}`),
		"with roles that are no strings":        one.token(t, `{`+mine+`,"roles":[{"a":"b"}]}`),
		"valid for too long":                    one.token(t, `{`+mine+`,"iat":1}`),
		"with a costly claim":                   one.token(t, `{`+mine+`,"nested":[1`+strings.Repeat(",1", 2000)+`]}`),
		"of another tenant":                     two.token(t, `{"tenant":"red"}`),
		"of no tenant":                          two.token(t, `{}`),
		"with no text as user":                  two.token(t, `{"tenant":"blue","sub":5}`),
		"with numbers as roles":                 two.token(t, `{"tenant":"blue","roles":[1]}`),
	} {
		if got, err := ask(t, a, token); !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

// TestUnknownKeys: tokens with keys that the issuer has not make few requests for its keys, and
// do not hinder others while it does not answer.
func TestUnknownKeys(t *testing.T) {
	p := newProvider(t)
	p.slow = make(chan struct{})
	answer := sync.OnceFunc(func() { close(p.slow) })
	t.Cleanup(answer)
	a := started(t, "--authentication-config="+write(t, configHead+"jwt:\n"+p.entry("  claimMappings: {username: {claim: sub, prefix: ''}}\n")))
	if _, err := awaitToken(t, a, services.Credentials{BearerToken: p.token(t, `{}`)}); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 50)
	for i := range cap(results) {
		forged := p.raw(t, fmt.Sprint("other", i), p.payload(t, `{}`))
		go func() {
			_, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: forged})
			results <- err
		}()
	}
	for range 20 {
		if _, err := ask(t, a, p.token(t, `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	answer()
	for range cap(results) {
		if err := <-results; !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("a token with an unknown key: %v", err)
		}
	}
	if n := p.keys.Load(); n > 4 {
		t.Errorf("%d requests for the keys", n)
	}
}

// TestDistributedClaims: groups are fetched from the endpoint that a token names.
func TestDistributedClaims(t *testing.T) {
	p := newProvider(t)
	a := started(t, "--authentication-config="+write(t, configHead+"jwt:\n"+p.entry("  claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: groups, prefix: ''}}\n")))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(p.token(t, `{"groups":["http"]}`))) // the client sees a broken answer
	}))
	defer plain.Close()
	answers := map[string]string{
		"good": p.token(t, `{"groups":["g1","g2"]}`), "others": p.token(t, `{"groups":["g"],"aud":"you"}`), "expired": p.token(t, `{"groups":["g"],"exp":1}`),
		"none": p.token(t, `{}`), "text": "no token", "large": strings.Repeat("x", 2<<20),
		"forged": (&provider{Server: p.Server, key: newKey(t)}).raw(t, "", p.payload(t, `{"groups":["g"]}`)),
	}
	p.handle("/groups/{which}", func(r *http.Request) string {
		if r.Header.Get("Authorization") != "Bearer secret" {
			return ""
		}
		return answers[r.PathValue("which")]
	})
	token := func(endpoint string) string {
		return p.token(t, `{"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"`+endpoint+`","access_token":"secret"}}}`)
	}
	got, err := awaitToken(t, a, services.Credentials{BearerToken: token(p.URL + "/groups/good")})
	if err != nil || strings.Join(got.User.Groups, " ") != "g1 g2 system:authenticated" {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, endpoint := range []string{p.URL + "/groups/others", p.URL + "/groups/expired", p.URL + "/groups/none", p.URL + "/groups/text", p.URL + "/groups/large",
		p.URL + "/groups/forged", p.URL + "/missing", plain.URL, "file:///etc/passwd", "https://127.0.0.1:1/"} {
		if got, err := ask(t, a, token(endpoint)); !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%s: %+v, %v", endpoint, got, err)
		}
	}
	for _, broken := range []string{`{"_claim_names":{"groups":"s"}}`, `{"_claim_names":{"groups":"s"},"_claim_sources":{}}`, `{"_claim_names":7}`} {
		if got, err := ask(t, a, p.token(t, broken)); !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%s: %+v, %v", broken, got, err)
		}
	}
}

// TestAnonymousPaths: only requests for the paths of the file are anonymous.
func TestAnonymousPaths(t *testing.T) {
	a := started(t, "--authentication-config="+write(t, configHead+"anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}\n"),
		"--token-auth-file="+tokens(t, "one,jane,1"))
	for path, want := range map[string]bool{"/livez": true, "/readyz": true, "": false, "/": false, "/livez/": false, "/livez/etcd": false, "/LIVEZ": false, "/api": false} {
		got, err := a.Authenticate(t.Context(), services.Credentials{Path: path})
		if want != (err == nil) || want && got.User.Name != services.UserAnonymous || !want && !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%q: %+v, %v", path, got, err)
		}
	}
	if got, err := a.Authenticate(t.Context(), services.Credentials{Path: "/api", BearerToken: "one"}); err != nil || got.User.Name != "jane" {
		t.Errorf("with a token: %+v, %v", got, err)
	}
	if _, err := a.Authenticate(t.Context(), services.Credentials{Path: "/livez", BearerToken: "two"}); !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("with an invalid token: %v", err)
	}
	off := started(t, "--authentication-config="+write(t, configHead+"anonymous: {enabled: false}\n"))
	if _, err := off.Authenticate(t.Context(), services.Credentials{Path: "/livez"}); !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("anonymous requests are off: %v", err)
	}
	unsaid := started(t, "--authentication-config="+write(t, configHead), "--anonymous-auth=false")
	if _, err := unsaid.Authenticate(t.Context(), services.Credentials{Path: "/livez"}); !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("the flag counts if the file does not say: %v", err)
	}
}
