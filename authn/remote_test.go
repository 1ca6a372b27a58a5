package authn_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
)

func TestTokenWebhook(t *testing.T) {
	var calls atomic.Int32
	var parents atomic.Value // the traceparent of the last call
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		parents.Store(r.Header.Get("Traceparent"))
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review) // a bad body fails the comparison below
		if review["apiVersion"] != "authentication.platform.io/v1" || review["kind"] != "TokenReview" {
			http.Error(w, "unexpected review", http.StatusBadRequest)
			return
		}
		review["status"] = map[string]any{"authenticated": false, "error": "never heard of it"}
		spec := review["spec"].(map[string]any)
		user := map[string]any{"username": "hanna", "uid": "h", "groups": []string{"g"}, "extra": map[string]any{"color": []string{"red"}}}
		switch spec["token"] {
		case "known":
			review["status"] = map[string]any{"authenticated": true, "user": user}
		case "meant":
			review["status"] = map[string]any{"authenticated": true, "user": user, "audiences": spec["audiences"]}
		case "for others":
			review["status"] = map[string]any{"authenticated": true, "user": user, "audiences": []string{"elsewhere"}}
		}
		_ = json.NewEncoder(w).Encode(review) // the client sees a broken answer
	}))
	defer hook.Close()
	config := write(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]}`, hook.URL+"/review", certificateOf(t, hook)))
	a := started(t, "--authentication-token-webhook-config-file="+config, "--authentication-token-webhook-version=v1")
	for range 3 {
		got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: "known"})
		if err != nil || got.User.Name != "hanna" || got.User.Extra["color"][0] != "red" || got.CacheFor <= 0 {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls for one token", n)
	}
	for _, c := range []struct {
		token     string
		audiences []string
		want      bool
	}{
		{"meant", nil, true}, {"meant", []string{"vault"}, true},
		{"for others", nil, false}, {"for others", []string{"elsewhere"}, true}, {"for others", []string{"vault"}, false},
		{"known", []string{"vault"}, false}, // what names no audience is for the API
	} {
		got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: c.token, Audiences: c.audiences})
		if (err == nil) != c.want || err == nil && len(got.Audiences) != max(1, len(c.audiences)) {
			t.Errorf("%s, asked for %q: %+v, %v", c.token, c.audiences, got, err)
		}
	}
	if parent := parents.Load(); parent != "" {
		t.Errorf("a call without a trace names %v", parent)
	}
	ctx, trace := sampled(t)
	_, err := a.Authenticate(ctx, services.Credentials{BearerToken: "unknown"})
	if !services.IsReason(err, services.ReasonUnauthorized) || err.Error() != "never heard of it" {
		t.Errorf("an unknown token: %v", err)
	}
	if parent := parents.Load().(string); !strings.HasPrefix(parent, "00-"+trace) {
		t.Errorf("the call names %q, want the trace %s", parent, trace)
	}
}

// sampled returns the context of a sampled request, and the ID of its trace.
func sampled(t *testing.T) (context.Context, string) {
	t.Helper()
	tracer, err := tracing.New(tracing.Config{Endpoint: collector.Start(t).Address, Sampling: 1,
		Process: tracing.Process{Name: "authn", Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tracer.Shutdown(context.Background()) })
	ctx, _ := tracer.Begin(t.Context(), tracing.Origin{})
	return ctx, tracing.TraceID(ctx)
}

func TestOpenIDConnect(t *testing.T) {
	key := newKey(t)
	issuer := openIDIssuer(t, jose.JSONWebKey{Key: key.Public(), Algorithm: "ES256", Use: "sig"})
	a := started(t, "--oidc-issuer-url="+issuer.URL, "--oidc-client-id=me", "--oidc-ca-file="+certificateOf(t, issuer),
		"--oidc-signing-algs=RS256,ES256", "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:", "--oidc-required-claim=tenant=blue")
	token := func(change func(map[string]any)) services.Credentials {
		claims := map[string]any{"iss": issuer.URL, "aud": "me", "sub": "ann", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
			"groups": []string{"g1", "g2"}, "tenant": "blue"}
		change(claims)
		return services.Credentials{BearerToken: signed(t, key, claims)}
	}
	got, err := awaitToken(t, a, token(func(map[string]any) {}))
	if err != nil || got.User.Name != issuer.URL+"#ann" || strings.Join(got.User.Groups, " ") != "oidc:g1 oidc:g2 system:authenticated" {
		t.Fatalf("got %+v, %v", got, err)
	}
	for what, change := range map[string]func(map[string]any){
		"expired":            func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"from the future":    func(c map[string]any) { c["iat"] = time.Now().Add(time.Hour).Unix() },
		"from no time":       func(c map[string]any) { delete(c, "iat") },
		"for another client": func(c map[string]any) { c["aud"] = "you" },
		"of another tenant":  func(c map[string]any) { c["tenant"] = "red" },
		"groups of no texts": func(c map[string]any) { c["groups"] = []int{1} },
		"no user":            func(c map[string]any) { delete(c, "sub") },
	} {
		if _, err := a.Authenticate(t.Context(), token(change)); !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// openIDIssuer starts an OpenID Connect issuer with the keys.
func openIDIssuer(t *testing.T, keys ...jose.JSONWebKey) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	issuer := httptest.NewTLSServer(mux)
	t.Cleanup(issuer.Close)
	answer := func(path string, content any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(content) // the client sees a broken answer
		})
	}
	answer("/.well-known/openid-configuration", map[string]any{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys"})
	answer("/keys", jose.JSONWebKeySet{Keys: keys})
	return issuer
}

// awaitToken authenticates with a token, again until the issuer is discovered, which happens
// while serving.
func awaitToken(t testing.TB, a services.Authn, c services.Credentials) (got services.Authentication, err error) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		if got, err = a.Authenticate(t.Context(), c); err == nil || time.Now().After(end) {
			return got, err
		}
	}
}

// TestSigningAlgorithms: only ID tokens with an algorithm of --oidc-signing-algs are accepted,
// RS256 by default.
func TestSigningAlgorithms(t *testing.T) {
	elliptic := newKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	issuer := openIDIssuer(t, jose.JSONWebKey{Key: elliptic.Public(), KeyID: "e", Use: "sig"}, jose.JSONWebKey{Key: rsaKey.Public(), KeyID: "r", Use: "sig"})
	claims := map[string]any{"iss": issuer.URL, "aud": "me", "sub": "ann", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	flags := []string{"--oidc-issuer-url=" + issuer.URL, "--oidc-client-id=me", "--oidc-ca-file=" + certificateOf(t, issuer)}
	tokens := map[jose.SignatureAlgorithm]string{
		jose.RS256: signedWith(t, jose.RS256, rsaKey, claims), jose.PS512: signedWith(t, jose.PS512, rsaKey, claims), jose.ES256: signed(t, elliptic, claims)}
	for flag, accepted := range map[string][]jose.SignatureAlgorithm{
		"":                                {jose.RS256},
		"--oidc-signing-algs=ES256,PS512": {jose.ES256, jose.PS512},
	} {
		given := flags
		if flag != "" {
			given = append(slices.Clone(flags), flag)
		}
		a := started(t, given...)
		for _, algorithm := range accepted {
			if _, err := awaitToken(t, a, services.Credentials{BearerToken: tokens[algorithm]}); err != nil {
				t.Errorf("%q: %s: %v", flag, algorithm, err)
			}
		}
		for algorithm, token := range tokens {
			if slices.Contains(accepted, algorithm) {
				continue
			}
			if _, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: token}); !services.IsReason(err, services.ReasonUnauthorized) {
				t.Errorf("%q: %s: %v", flag, algorithm, err)
			}
		}
	}
	for _, flag := range []string{"--oidc-signing-algs=none", "--oidc-signing-algs=HS256", "--oidc-signing-algs="} {
		if _, err := start(t, append(slices.Clone(flags), flag)...); err == nil || !strings.Contains(err.Error(), "--oidc-signing-algs") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// certificateOf writes the certificate of a test server to a file.
func certificateOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	return write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}
