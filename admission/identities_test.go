package admission_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// visitors is a webhook server that remembers how each visitor proved who it is.
type visitors struct {
	*remote
	mu   sync.Mutex
	seen map[string]string // by path
}

func serveVisitors(t *testing.T, authority string) *visitors {
	t.Helper()
	v := &visitors{remote: serve(t), seen: map[string]string{}}
	inner := v.Config.Handler
	pem, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.Header.Get("Authorization") + r.Header.Get("Impersonate-User")
		for _, c := range r.TLS.PeerCertificates {
			who += "certificate of " + strings.Join(c.DNSNames, ",")
		}
		v.mu.Lock()
		v.seen[strings.Trim(r.URL.Path, "/")] = who
		v.mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	v.Server = s
	return v
}

// TestWebhookIdentities: webhooks see the user of the kubeconfig file that is named after
// their host, or the next that fits.
func TestWebhookIdentities(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), "admission")
	if err != nil {
		t.Fatal(err)
	}
	s := serveVisitors(t, files.CA)
	host := strings.TrimPrefix(s.URL, "https://")
	_, port, _ := strings.Cut(host, ":")
	certificate := fmt.Sprintf("client-certificate: %s, client-key: %s", files.Cert, files.Key)
	for name, x := range map[string]struct{ users, want string }{
		"a token":             {"{name: '" + host + "', user: {token: secret}}, {name: '*', user: {token: other}}", "Bearer secret"},
		"a certificate":       {"{name: '" + host + "', user: {" + certificate + "}}", "certificate of "},
		"a password":          {"{name: '" + host + "', user: {username: a, password: b}}", "Basic YTpi"},
		"a star":              {"{name: '*.0.0.1:" + port + "', user: {token: star}}, {name: '*', user: {token: other}}", "Bearer star"},
		"any":                 {"{name: '*', user: {token: any}}, {name: 'example.com:443', user: {token: other}}", "Bearer any"},
		"the current context": {"{name: me, user: {token: current}}", "Bearer current"},
		"nobody":              {"{name: 'example.com:443', user: {token: other}}", ""},
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {user: me}}]\nusers: ["+x.users+"]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := cluster(t)
		configure(t, c, "mutating", "a", s.hook("mutating"))
		configure(t, c, "validating", "a", s.hook("validating"))
		a := started(t, c, configuration(t, `
- {name: MutatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.platform.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: `+path+`}}
`))
		if _, err := a.Mutate(t.Context(), create("here")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := a.Validate(t.Context(), create("here")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.mu.Lock()
		if got := s.seen["mutating"]; !strings.HasPrefix(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%s: the webhook saw %q, want %q", name, got, x.want)
		}
		if got := s.seen["validating"]; got != "" { // its plugin has no configuration
			t.Errorf("%s: a webhook of the other plugin saw %q", name, got)
		}
		s.mu.Unlock()
	}
}

func TestWebhookIdentitiesAreRefused(t *testing.T) {
	of := func(content string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\nusers: [{name: x, user: {"+content+"}}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		"relative":                         "must be an absolute file path",
		"/missing/kubeconfig":              "/missing/kubeconfig",
		of("client-certificate: /missing"): "users[x]",
		of("client-key-data: YQ=="):        "users[x]",
		of("tokenFile: /missing/token"):    "users[x]",
		of("auth-provider: {name: x}"):     "users[x]: auth-provider",
		of("as-groups: [admins]"):          "users[x]",
	} {
		for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
			_, err := start(t, cluster(t), configuration(t, "- {name: "+plugin+", configuration: {apiVersion: apiserver.config.platform.io/v1alpha1, kind: WebhookAdmission, kubeConfigFile: "+path+"}}\n"))
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "plugins[0].configuration: kubeConfigFile") {
				t.Errorf("%s: %v, want %q", path, err, want)
			}
		}
	}
}

// TestClientCertificate: webhooks and admission services that ask for a certificate of its
// authority see that of --admission-client-cert-file; those that the configuration of
// webhooks names, or that trust another authority, do not.
func TestClientCertificate(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), "admission")
	if err != nil {
		t.Fatal(err)
	}
	own := serveVisitors(t, files.CA)
	server := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate().Raw})
	other := filepath.Join(t.TempDir(), "other.crt")
	if err := os.WriteFile(other, server, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := serveVisitors(t, other)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\nusers: [{name: '*', user: {token: secret}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	strict := &delegate{clients: x509.NewCertPool()}
	trusted, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	strict.clients.AppendCertsFromPEM(trusted)
	delegated(t, strict)
	c := cluster(t)
	configure(t, c, "mutating", "a", own.hook("mutating"), foreign.hook("mutating"))
	configure(t, c, "validating", "a", own.hook("validating"))
	strict.declare(t, c, "strict")
	declare(t, c, "reviews", `"protocol":"webhook"`, fmt.Sprintf(`"endpoint":{"url":"%s/service"},"trust":{"caBundle":%q}`, own.URL, base64.StdEncoding.EncodeToString(server)))
	flags := []string{"--admission-client-cert-file=" + files.Cert, "--admission-client-key-file=" + files.Key}
	a := started(t, c, append(flags, configuration(t, `
- {name: ValidatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.platform.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: `+config+`}}
`))...)
	for _, ask := range []review{a.Mutate, a.Validate} {
		if _, err := ask(t.Context(), named("c")); err != nil {
			t.Error(err)
		}
	}
	for path, want := range map[string]string{"mutating": "certificate of ", "service": "certificate of ", "validating": "Bearer secret"} {
		if got := own.seen[path]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: the server saw %q, want %q", path, got, want)
		}
	}
	if got := foreign.seen["mutating"]; got != "" {
		t.Errorf("a server that trusts another authority saw %q", got)
	}
	if len(strict.requests()) != 2 {
		t.Error("a service that needs a certificate was not asked")
	}
	for _, wrong := range [][]string{flags[:1], {flags[0], "--admission-client-key-file=/missing"}} {
		if _, err := start(t, c, wrong...); !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "--admission-client-key-file") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
