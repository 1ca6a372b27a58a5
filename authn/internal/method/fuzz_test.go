package method

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/lru"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// secrets is a store that returns the same object for every name.
type secrets struct {
	services.Reader
	json []byte
}

func (s secrets) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	return services.Object{Key: r.Key, JSON: s.json}, nil
}

const fuzzToken = "abcdef.0123456789abcdef"

// FuzzBootstrapToken: of all tokens only the stored one authenticates.
func FuzzBootstrapToken(f *testing.F) {
	v := vocabulary.Platform()
	stored, err := json.Marshal(map[string]any{"type": v.Qualified("bootstrap", "token"), "data": map[string][]byte{
		"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true")}})
	if err != nil {
		f.Fatal(err)
	}
	m := NewBootstrap(secrets{json: stored}, v, time.Now)
	if _, err := m.Authenticate(f.Context(), services.Credentials{BearerToken: fuzzToken}); err != nil {
		f.Fatal("the stored token does not let in: ", err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		a, err := m.Authenticate(t.Context(), services.Credentials{BearerToken: token})
		if err == nil && (token != fuzzToken || a.User.Name != "system:bootstrap:abcdef") {
			t.Errorf("%q lets in %+v", token, a.User)
		}
	})
}

// FuzzBootstrapSecret: no content of the Secret yields groups outside
// system:bootstrappers.
func FuzzBootstrapSecret(f *testing.F) {
	f.Fuzz(func(t *testing.T, object []byte) {
		m := NewBootstrap(secrets{json: object}, vocabulary.Platform(), time.Now)
		a, err := m.Authenticate(t.Context(), services.Credentials{BearerToken: fuzzToken})
		if err != nil {
			return
		}
		for _, group := range a.User.Groups {
			if group != groupBootstrap && !strings.HasPrefix(group, groupBootstrap+":") {
				t.Errorf("%q gives group %q", object, group)
			}
		}
	})
}

// FuzzServiceAccountToken: tokens that no known key has signed are rejected.
func FuzzServiceAccountToken(f *testing.F) {
	m, err := NewServiceAccount(ServiceAccountConfig{Vocabulary: vocabulary.Platform(), KeyFiles: []string{"testdata/account.pub"},
		Issuers: []string{"https://issuer"}, Audiences: []string{"https://issuer"}}, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if a, err := m.Authenticate(t.Context(), services.Credentials{BearerToken: token}); err == nil {
			t.Errorf("%q lets in %+v", token, a.User)
		}
	})
}

// FuzzTokenFile parses static token files: every user has a name, and a request without a
// token is not authenticated.
func FuzzTokenFile(f *testing.F) {
	path := f.TempDir() + "/tokens.csv"
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := NewTokenFile([]string{path}, slog.New(slog.DiscardHandler))
		if err != nil {
			return
		}
		for _, user := range m.files.Now().users {
			if user.Name == "" {
				t.Errorf("%q has a user without a name", content)
			}
		}
		if _, err := m.Authenticate(t.Context(), services.Credentials{}); !errors.Is(err, ErrNone) {
			t.Errorf("%q: no token lets in: %v", content, err)
		}
	})
}

// FuzzProxyHeaders: extra attributes are read only from headers with the prefix.
func FuzzProxyHeaders(f *testing.F) {
	m := &Proxy{config: ProxyConfig{ExtraPrefixes: []string{"X-Remote-Extra-"}}}
	f.Fuzz(func(t *testing.T, name, value string) {
		var a services.Authentication
		m.readExtra(map[string][]string{name: {value}}, &a)
		if taken := len(a.User.Extra) > 0; taken != strings.HasPrefix(strings.ToLower(name), "x-remote-extra-") || taken != (len(a.ProxyHeaders) == 1) {
			t.Errorf("%q: got %v, %v", name, a.User.Extra, a.ProxyHeaders)
		}
	})
}

// FuzzCertificate: chains that no trusted authority has signed are rejected.
func FuzzCertificate(f *testing.F) {
	roots := x509.NewCertPool()
	f.Fuzz(func(t *testing.T, leaf, intermediate []byte) {
		if c, err := verifyClient([][]byte{leaf, intermediate}, roots, time.Now()); err == nil {
			t.Errorf("verified %v", c.Subject)
		}
	})
}

// reply is a transport with one response.
type reply []byte

func (r reply) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(r))}, nil
}

// FuzzTokenReview: a token is accepted only by a TokenReview that says so, names a user and is for
// the audience.
func FuzzTokenReview(f *testing.F) {
	for _, status := range []string{`{"authenticated":true,"user":{"username":"a","uid":"1","groups":["g"],"extra":{"k":["v"]}}}`, `{"authenticated":true}`, `{"error":"no"}`,
		`{"authenticated":true,"user":{"username":"a"},"audiences":["api"]}`, `{"authenticated":true,"user":{"username":"a"},"audiences":["other"]}`, `null`} {
		f.Add([]byte(`{"apiVersion":"v","kind":"TokenReview","status":` + status + `}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := &Webhook{config: WebhookConfig{APIVersion: "v", Audiences: []string{"api"}, Log: slog.New(slog.DiscardHandler)}, url: "https://webhook", client: &http.Client{Transport: reply(body)},
			answers: lru.New(1), now: time.Now}
		a, err := m.Authenticate(t.Context(), services.Credentials{BearerToken: "t"})
		if err != nil {
			return
		}
		var said tokenReview
		if err := json.Unmarshal(body, &said); err != nil || said.Kind != "TokenReview" || !said.Status.Authenticated || a.User.Name == "" || a.User.Name != said.Status.User.Username ||
			len(said.Status.Audiences) > 0 && !slices.Contains(said.Status.Audiences, "api") {
			t.Errorf("%q: %+v", body, a)
		}
	})
}
