package method

import (
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/portico-platform/portico/services"
)

// newWebhook returns the method for a service over HTTPS.
func newWebhook(t *testing.T, service http.HandlerFunc) *Webhook {
	t.Helper()
	server := httptest.NewUnstartedServer(service)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	config := api.NewConfig()
	config.Clusters["a"] = &api.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.Contexts["a"], config.CurrentContext = &api.Context{Cluster: "a"}, "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	m, err := NewWebhook(WebhookConfig{ConfigFile: file, APIVersion: "authentication.platform.io/v1", Audiences: []string{"api"}, CacheFor: time.Hour,
		Log: slog.New(slog.DiscardHandler)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// granted is a response that names a user with groups.
func granted(user string, groups ...string) string {
	return fmt.Sprintf(`{"apiVersion":"authentication.platform.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":%q,"groups":["%s"]}}}`,
		user, strings.Join(groups, `","`))
}

// TestWebhooksThatMisbehave: whatever the service answers, a token goes to it alone, and a response
// takes bounded memory and time.
func TestWebhooksThatMisbehave(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = io.WriteString(w, granted("redirected"))
	}))
	defer other.Close()
	redirect := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, code) }
	}
	for name, c := range map[string]struct {
		service http.HandlerFunc
		want    string // part of the error
	}{
		"a redirect":                       {redirect(http.StatusFound), "302"},
		"a redirect that repeats the body": {redirect(http.StatusTemporaryRedirect), "307"},
		"headers of a mebibyte": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("a", 50<<10))
			}
			_, _ = io.WriteString(w, granted("jane"))
		}, ""}, // with HTTP/2 the connection ends
		"a body without end": {func(w http.ResponseWriter, _ *http.Request) {
			for block := make([]byte, 64<<10); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "more than"},
		"a compressed bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			for block := make([]byte, 1<<20); ; {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
		}, "more than"},
		"no TokenReview": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "did not return a TokenReview"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := newWebhook(t, c.service).Authenticate(t.Context(), services.Credentials{BearerToken: "secret"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v", a.User, err)
			}
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("a token went elsewhere")
	}
	m := newWebhook(t, func(http.ResponseWriter, *http.Request) {})
	if transport, ok := m.client.Transport.(*http.Transport); !ok || transport.HTTP2 == nil || transport.DialContext == nil {
		t.Error("silent connections are not noticed")
	}
}

// TestLargeResponsesAreNotCached: thousands of users in thousands of groups do not fill the memory.
func TestLargeResponsesAreNotCached(t *testing.T) {
	var asked atomic.Int32
	m := newWebhook(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		groups := []string{"small"}
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "large") {
			groups = []string{strings.Repeat("a", webhookMaxCached)}
		}
		_, _ = io.WriteString(w, granted("jane", groups...))
	})
	for token, want := range map[string]int32{"small": 1, "large": 3} {
		asked.Store(0)
		for range 3 {
			if a, err := m.Authenticate(t.Context(), services.Credentials{BearerToken: token}); err != nil || a.User.Name != "jane" {
				t.Fatal(a, err)
			}
		}
		if got := asked.Load(); got != want {
			t.Errorf("%s: asked %d times, want %d", token, got, want)
		}
	}
	_, err := NewWebhook(WebhookConfig{ConfigFile: os.DevNull}, time.Now)
	if err == nil {
		t.Error("an empty kubeconfig is accepted")
	}
}
