package authn

import (
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/portico-platform/portico/authn/internal/config"
	"github.com/portico-platform/portico/authn/internal/issuers"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

func parserOf(t testing.TB, v vocabulary.Vocabulary) *config.Parser {
	t.Helper()
	p, err := config.NewParser(config.Settings{Vocabulary: v, Release: release.V136, Reserved: []string{"https://accounts"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func head(v vocabulary.Vocabulary, version string) string {
	return "apiVersion: " + v.Group("apiserver.config.") + "/" + version + "\nkind: AuthenticationConfiguration\n"
}

// TestConfigurationFiles: both versions are read in both vocabularies, each with its own group.
func TestConfigurationFiles(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		for _, version := range []string{"v1", "v1beta1"} {
			file, err := parserOf(t, v).Parse([]byte(head(v, version) + "jwt:\n- {issuer: {url: 'https://a', discoveryURL: 'https://b/c', audiences: [x]}, claimMappings: {username: {claim: sub, prefix: ''}}}\n" +
				"anonymous: {enabled: true, conditions: [{path: /livez}]}\n"))
			if err != nil || len(file.Issuers) != 1 || file.Issuers[0].Issuer.DiscoveryURL != "https://b/c" || file.Anonymous.Conditions[0].Path != "/livez" {
				t.Errorf("%s, %s: %+v, %v", v.Name, version, file, err)
			}
		}
	}
}

// TestRefusedConfigurations: the error names the field.
func TestRefusedConfigurations(t *testing.T) {
	v := vocabulary.Platform()
	const issuer, name = "issuer: {url: 'https://a', audiences: [x]}", "claimMappings: {username: {claim: sub, prefix: ''}}"
	for content, want := range map[string]string{
		"":                           `apiVersion: "" is not supported`,
		head(vocabulary.K8s(), "v1"): "apiVersion: ",
		head(v, "v1alpha1"):          "apiVersion: ",
		strings.Replace(head(v, "v1"), "Authentication", "Authorization", 1):                                                                                                                 "kind: ",
		head(v, "v1") + "jwtt: []\n":                                                                                                                                                         `unknown field "jwtt"`,
		head(v, "v1") + "jwt: []\njwt: []\n":                                                                                                                                                 `"jwt" already set`,
		head(v, "v1") + "jwt: [{" + issuer + ", " + name + ", issuers: {}}]\n":                                                                                                               `unknown field "jwt[0].issuers"`,
		head(v, "v1") + "jwt: [{" + name + "}]\n":                                                                                                                                            "jwt[0].issuer.url: Required value",
		head(v, "v1") + "jwt: [{issuer: {url: 'http://a', audiences: [x]}, " + name + "}]\n":                                                                                                 `jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https`,
		head(v, "v1") + "jwt: [{issuer: {url: 'https://accounts', audiences: [x]}, " + name + "}]\n":                                                                                         "jwt[0].issuer.url: Invalid value: \"https://accounts\": URL must not overlap with disallowed issuers",
		head(v, "v1") + "jwt: [{issuer: {url: 'https://a'}, " + name + "}]\n":                                                                                                                "jwt[0].issuer.audiences: Required value",
		head(v, "v1") + "jwt: [{issuer: {url: 'https://a', audiences: [x, z]}, " + name + "}]\n":                                                                                             "jwt[0].issuer.audienceMatchPolicy: Invalid value",
		head(v, "v1") + "jwt: [{issuer: {url: 'https://a', audiences: [x], certificateAuthority: z}, " + name + "}]\n":                                                                       "jwt[0].issuer.certificateAuthority: Invalid value",
		head(v, "v1") + "jwt: [{issuer: {url: 'https://a', audiences: [x], egressSelectorType: cluster}, " + name + "}]\n":                                                                   "jwt[0].issuer.egressSelectorType: Invalid value",
		head(v, "v1") + "jwt: [{issuer: {url: 'https://a', discoveryURL: 'https://a/', audiences: [x]}, " + name + "}]\n":                                                                    "jwt[0].issuer.discoveryURL: Invalid value",
		head(v, "v1") + "jwt: [{" + issuer + ", " + name + "}, {" + issuer + ", " + name + "}]\n":                                                                                            `jwt[1].issuer.url: Duplicate value: "https://a"`,
		head(v, "v1") + "jwt: [{" + issuer + "}]\n":                                                                                                                                          "jwt[0].claimMappings.username: Required value",
		head(v, "v1") + "jwt: [{" + issuer + ", claimMappings: {username: {claim: sub}}}]\n":                                                                                                 "jwt[0].claimMappings.username.prefix: Required value",
		head(v, "v1") + "jwt: [{" + issuer + ", claimMappings: {username: {expression: 'claims.'}}}]\n":                                                                                      "jwt[0].claimMappings.username.expression: Invalid value: \"claims.\": compilation failed",
		head(v, "v1") + "jwt: [{" + issuer + ", claimMappings: {username: {expression: 'claims.email'}}}]\n":                                                                                 "claims.email_verified must be used",
		head(v, "v1") + "jwt: [{" + issuer + ", " + name + ", claimValidationRules: [{expression: '1'}]}]\n":                                                                                 "jwt[0].claimValidationRules[0].expression: Invalid value: \"1\": must evaluate to bool",
		head(v, "v1") + "jwt: [{" + issuer + ", " + name + ", userValidationRules: [{expression: 'user.nam == \"\"'}]}]\n":                                                                   "jwt[0].userValidationRules[0].expression: Invalid value",
		head(v, "v1") + "jwt: [{" + issuer + ", claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: authentication.platform.io/credential-id, valueExpression: '\"x\"'}]}}]\n": "jwt[0].claimMappings.extra[0].key: Invalid value",
		head(v, "v1") + "anonymous: {enabled: false, conditions: [{path: /}]}\n":                                                                                                             "anonymous.conditions: Invalid value",
	} {
		if _, err := parserOf(t, v).Parse([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got  %v\n want %s", content, err, want)
		}
	}
}

// discovered is an issuer that can be discovered once it is up.
type discovered struct {
	*httptest.Server
	up atomic.Bool
}

func newDiscovered(t *testing.T) *discovered {
	d := &discovered{}
	d.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !d.up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, d.URL, d.URL+"/keys") // the client sees a broken answer
	}))
	t.Cleanup(d.Close)
	return d
}

// file is a file with this issuer.
func (d *discovered) file() string {
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw}))
	return head(vocabulary.Platform(), "v1") + fmt.Sprintf("jwt:\n- issuer: {url: %q, audiences: [x], certificateAuthority: %q}\n  claimMappings: {username: {claim: sub, prefix: ''}}\n", d.URL, ca)
}

// TestConfigurationIsReplaced: a new file counts once its issuers are discovered, and one with an
// error never does.
func TestConfigurationIsReplaced(t *testing.T) {
	one, two := newDiscovered(t), newDiscovered(t)
	path := filepath.Join(t.TempDir(), "authentication")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(one.file())
	registry := prometheus.NewRegistry()
	settings := issuers.Settings{Metrics: issuers.NewMetrics(registry), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	c, err := openConfiguration(path, parserOf(t, vocabulary.Platform()), settings, registry)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, url string, used, refused float64) {
		t.Helper()
		if got := c.current.Load().URLs(); len(got) != 1 || got[0] != url {
			t.Errorf("%s: the issuers are %v, want %s", what, got, url)
		}
		const reloads = "apiserver_authentication_config_controller_automatic_reloads_total"
		if a, b := kittest.Metric(t, registry, reloads, "success"), kittest.Metric(t, registry, reloads, "failure"); a != used || b != refused {
			t.Errorf("%s: %v files used and %v refused, want %v and %v", what, a, b, used, refused)
		}
	}
	write(one.file() + "more: {}\n")
	for range 2 { // it is refused once
		c.refresh(t.Context())
	}
	check("an unknown field", one.URL, 0, 1)
	write(one.file() + "anonymous: {enabled: true}\n")
	c.refresh(t.Context())
	check("another anonymous", one.URL, 0, 2)
	write(two.file())
	c.refresh(t.Context())
	c.take(time.Now())
	check("an issuer that is down", one.URL, 0, 2)
	c.take(time.Now().Add(discoveredWithin + time.Second))
	check("an issuer that is down for long", one.URL, 0, 3)
	two.up.Store(true)
	if err := c.pending.Run(t.Context()); err != nil || c.take(time.Now()) == nil {
		t.Errorf("an issuer that is up: %v, %v", err, c.pending.Discovered())
	}
	check("an issuer that is up", two.URL, 1, 3)
	if n, err := testutil.GatherAndCount(registry, "apiserver_authentication_config_controller_last_config_info"); n != 1 || err != nil {
		t.Errorf("%d files are in use, %v", n, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is counted once
		c.refresh(t.Context())
	}
	check("a file that cannot be read", two.URL, 1, 4)
	write(two.file())
	c.refresh(t.Context())
	if c.pending != nil {
		t.Error("a file is used twice")
	}
}

// FuzzConfigurationFile: every issuer of a file that is accepted has an HTTPS address of its own and audiences.
func FuzzConfigurationFile(f *testing.F) {
	v := vocabulary.Platform()
	p := parserOf(f, v)
	for _, content := range []string{"", "jwt:\n- issuer: {url: 'https://a', audiences: [x]}\n  claimMappings: {username: {claim: sub, prefix: ''}}\n", "anonymous: {enabled: true, conditions: [{path: /livez}]}\n",
		"jwt:\n- issuer: {url: 'https://a', discoveryURL: 'https://b/c', audiences: [x, z], audienceMatchPolicy: MatchAny}\n  claimValidationRules: [{expression: 'claims.hd == \"a\"'}]\n" +
			"  claimMappings: {username: {expression: 'claims.sub'}, groups: {expression: 'claims.groups'}, extra: [{key: a.example/b, valueExpression: 'claims.c'}]}\n" +
			"  userValidationRules: [{expression: 'user.username != \"root\"'}]\n"} {
		f.Add([]byte(head(v, "v1") + content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := p.Parse(content)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, i := range file.Issuers {
			if seen[i.Issuer.URL] || !strings.HasPrefix(i.Issuer.URL, "https://") || len(i.Issuer.Audiences) == 0 {
				t.Errorf("%q: %+v", content, i.Issuer)
			}
			seen[i.Issuer.URL] = true
		}
	})
}
