package atrest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/etcd/atrest/internal/kms"
	"github.com/portico-platform/portico/services/reload"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

const head = "apiVersion: apiserver.config.platform.io/v1\nkind: EncryptionConfiguration\nresources:\n"

func secret(n byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 32)) }

func provider(kind, name string, n byte) string {
	return fmt.Sprintf("{%s: {keys: [{name: %s, secret: %s}]}}", kind, name, secret(n))
}

func entry(resources string, providers ...string) string {
	return "- {resources: [" + resources + "], providers: [" + strings.Join(providers, ", ") + "]}\n"
}

// configured returns values by a file, which the test may replace.
func configured(t testing.TB, entries string) (*Values, func(entries string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	replace := func(entries string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(head+entries), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(entries)
	every, plugins := time.Duration(0), kms.New(slog.New(slog.DiscardHandler))
	if _, ok := t.(*testing.B); ok {
		every = readEvery
	}
	files, err := reload.Open(reload.Config[*config]{What: "test", Paths: []string{path}, Every: every, Log: slog.New(slog.DiscardHandler),
		Parse: func(content [][]byte) (*config, error) { return parse(content[0], vocabulary.Platform(), plugins) }})
	if err != nil {
		t.Fatal(err)
	}
	return &Values{files, plugins}, replace
}

// seal encrypts a value.
func seal(t testing.TB, values *Values, path string, value []byte) []byte {
	t.Helper()
	sealed, err := values.Seal(path, value)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func path(gr resource.GroupResource, name string) string {
	return resource.Key{GroupResource: gr, Namespace: "ns", Name: name}.Path()
}

var secrets = resource.GroupResource{Resource: "secrets"}

const plain = `{"uid":"u","at":1}` + "\n" + `{"data":{"password":"swordfish"}}`

func providers() []string { return []string{"aescbc", "aesgcm", "secretbox"} }

func TestSealedValues(t *testing.T) {
	for _, kind := range providers() {
		t.Run(kind, func(t *testing.T) {
			values, _ := configured(t, entry("secrets", provider(kind, "one", 1), "{identity: {}}"))
			at := path(secrets, "a")
			for size := range 40 {
				value := []byte(plain + strings.Repeat("x", size))
				sealed := seal(t, values, at, value)
				if !bytes.HasPrefix(sealed, []byte(Prefix+kind+":v1:one:")) || bytes.Contains(sealed, []byte("swordfish")) {
					t.Fatalf("sealed: %q", sealed)
				}
				if bytes.Equal(sealed, seal(t, values, at, value)) {
					t.Error("equal values are equal when encrypted")
				}
				if got, err := values.Open(at, sealed); err != nil || !bytes.Equal(got, value) {
					t.Fatalf("opened: %q, %v", got, err)
				}
			}
			if got, err := values.Open(at, []byte(plain)); err != nil || string(got) != plain {
				t.Errorf("a value from before: %q, %v", got, err)
			}
		})
	}
}

// TestForgedValues: each changed byte, each truncation, and another path or key is refused.
func TestForgedValues(t *testing.T) {
	for _, kind := range providers() {
		t.Run(kind, func(t *testing.T) {
			values, _ := configured(t, entry("secrets", provider(kind, "one", 1), provider(kind, "two", 2)))
			at := path(secrets, "a")
			sealed := seal(t, values, at, []byte(plain))
			refused := func(what, at string, stored []byte) {
				t.Helper()
				var unreadable *Unreadable
				if got, err := values.Open(at, stored); !errors.As(err, &unreadable) {
					t.Errorf("%s: %q, %v", what, got, err)
				}
			}
			for i := range sealed {
				forged := bytes.Clone(sealed)
				forged[i] ^= 1
				refused(fmt.Sprint("byte ", i), at, forged)
				refused(fmt.Sprint("first bytes ", i), at, sealed[:i])
			}
			refused("longer", at, append(bytes.Clone(sealed), 0))
			refused("moved", path(secrets, "b"), sealed)
			refused("renamed key", at, bytes.Replace(sealed, []byte(":one:"), []byte(":two:"), 1))
			refused("not encrypted", at, []byte(plain))
			other, _ := configured(t, entry("secrets", provider(kind, "one", 3)))
			refused("another secret", at, seal(t, other, at, []byte(plain)))
		})
	}
}

func TestTypes(t *testing.T) {
	values, _ := configured(t, entry("secrets, configmaps., deployments.apps", provider("aesgcm", "one", 1))+
		entry(`"*.example.com", roles.rbac.authorization.platform.io`, provider("aescbc", "one", 1))+
		entry("events", "{identity: {}}")+
		entry(`"*."`, provider("secretbox", "one", 1)))
	for want, types := range map[string][]resource.GroupResource{
		"aesgcm":    {secrets, {Resource: "configmaps"}, {Group: "apps", Resource: "deployments"}},
		"aescbc":    {{Group: "example.com", Resource: "widgets", Custom: true}, {Group: "rbac.authorization.", Resource: "roles"}},
		"secretbox": {{Resource: "pods"}},
		"":          {{Resource: "events"}, {Group: "apps", Resource: "daemonsets"}, {Group: "other.example.com", Resource: "x", Custom: true}},
	} {
		for _, gr := range types {
			sealed := seal(t, values, path(gr, "a"), []byte(plain))
			if encrypted := bytes.HasPrefix(sealed, []byte(Prefix+want+":")); encrypted != (want != "") || want == "" && string(sealed) != plain {
				t.Errorf("%s: %.40q, want %s", gr, sealed, want)
			}
			if got, err := values.Open(path(gr, "a"), sealed); err != nil || string(got) != plain {
				t.Errorf("%s: %v", gr, err)
			}
		}
	}
	if got := seal(t, values, "/portico/fences/x", nil); len(got) != 0 {
		t.Errorf("a key of no object: %q", got)
	}
}

// TestRotation follows a key from its introduction to its end, by replaced files.
func TestRotation(t *testing.T) {
	one, two, identity := provider("aesgcm", "one", 1), provider("secretbox", "two", 2), "{identity: {}}"
	values, replace := configured(t, entry("secrets", one, identity))
	at := path(secrets, "a")
	old := seal(t, values, at, []byte(plain))
	expect := func(stale, opens bool) {
		t.Helper()
		if got := values.Stale(at, old); got != stale {
			t.Errorf("stale: %v", got)
		}
		if _, err := values.Open(at, old); (err == nil) != opens {
			t.Errorf("opens: %v", err)
		}
	}
	expect(false, true)
	if !values.Stale(at, []byte(plain)) {
		t.Error("a plain value is current")
	}
	replace(entry("secrets", two, one))
	expect(true, true)
	replace("- nonsense")
	expect(true, true)
	replace(entry("secrets", two))
	expect(true, false)
	replace(entry("secrets", identity, one))
	expect(true, true)
	if values.Stale(at, []byte(plain)) || !values.Rotates(at) {
		t.Error("a plain value is stale with identity")
	}
	replace(entry("configmaps", one))
	expect(false, false)
}

func TestWithoutConfiguration(t *testing.T) {
	var none *Values
	at := path(secrets, "a")
	if got := seal(t, none, at, []byte(plain)); string(got) != plain {
		t.Errorf("sealed: %q", got)
	}
	if got, err := none.Open(at, []byte(plain)); err != nil || string(got) != plain {
		t.Errorf("opened: %q, %v", got, err)
	}
	if _, err := none.Open(at, []byte(Prefix+"aesgcm:v1:one:xx")); err == nil || !strings.Contains(err.Error(), "--encryption-provider-config is not set") {
		t.Errorf("got %v", err)
	}
}

func TestInvalidFiles(t *testing.T) {
	good, plugins := provider("aesgcm", "one", 1), kms.New(slog.New(slog.DiscardHandler))
	remote := "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a'}}"
	for content, want := range map[string]string{
		"": "must not be null", "a: [": "yaml",
		"apiVersion: v1\nkind: EncryptionConfiguration":                                                   "apiVersion: ",
		"apiVersion: apiserver.config.platform.io/v1\nkind: Secret":                                       "kind: ",
		"apiVersion: apiserver.config.platform.io/v1\nkind: EncryptionConfiguration\n":                    "resources: ",
		head + "- {providers: [" + good + "]}":                                                            "resources[0].resources: ",
		head + "- {resources: [secrets]}":                                                                 "resources[0].providers: ",
		head + "- {resources: [secrets], providers: [{}]}":                                                "resources[0].providers[0]: ",
		head + "- {resources: [secrets], provider: []}":                                                   `unknown field "resources[0].provider"`,
		head + entry("secrets", "{vault: {name: a}}"):                                                     "resources[0].providers[0].vault: not supported",
		head + entry("secrets", "{kms: {name: a, endpoint: 'unix:///a'}}"):                                "kms.apiVersion: v1, which is the default, is not supported: use v2",
		head + entry("secrets", "{kms: {apiVersion: v1, name: a, endpoint: 'unix:///a'}}"):                "kms.apiVersion: v1, which is the default, is not supported: use v2",
		head + entry("secrets", "{kms: {apiVersion: v3, name: a, endpoint: 'unix:///a'}}"):                `kms.apiVersion: "v3" is not supported: use v2`,
		head + entry("secrets", "{kms: {apiVersion: v2, name: 'a:b', endpoint: 'unix:///a'}}"):            "kms.name: it must have",
		head + entry("secrets", "{kms: {apiVersion: v2, name: a}}"):                                       "kms.endpoint: ",
		head + entry("secrets", "{kms: {apiVersion: v2, name: a, endpoint: 'tcp://a:1'}}"):                "kms.endpoint: ",
		head + entry("secrets", "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: 0s}}"):   "kms.timeout: ",
		head + entry("secrets", "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: 2m}}"):   "kms.timeout: ",
		head + entry("secrets", "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: soon}}"): "kms: ",
		head + entry("secrets", "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', cachesize: 9}}"):  "kms.cachesize: not supported with v2",
		head + entry("secrets", "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', key: 9}}"):        `unknown field "key"`,
		head + entry("secrets", remote) + entry("configmaps", remote):                                     "resources[1].providers[0].kms.name: ",
		head + entry("secrets", "{identity: {a: b}}"):                                                     "resources[0].providers[0].identity: ",
		head + entry("secrets", "{identity: {}}", "{identity: {}}"):                                       "resources[0].providers[1].identity: ",
		head + entry("secrets", good, good):                                                               "resources[0].providers[1].aesgcm: ",
		head + entry("secrets", "{aesgcm: {keys: []}}"):                                                   "resources[0].providers[0].aesgcm.keys: ",
		head + entry("secrets", "{aesgcm: null}"):                                                         "resources[0].providers[0].aesgcm: ",
		head + entry("secrets", "{aesgcm: {keys: [{name: a, secret: '%'}]}}"):                             "aesgcm.keys[0].secret: it is not base64",
		head + entry("secrets", "{secretbox: {keys: [{name: a, secret: aGVsbG8=}]}}"):                     "secretbox.keys[0].secret: it has 5 bytes",
		head + entry("secrets", "{aescbc: {keys: [{name: 'a:b', secret: aGVsbG8=}]}}"):                    "aescbc.keys[0].name: ",
		head + entry("secrets", "{aescbc: {keys: [{secret: aGVsbG8=}]}}"):                                 "aescbc.keys[0].name: ",
		head + entry("secrets", good) + entry("secrets", good):                                            "resources[1].resources[0]: ",
		head + entry("'*.apps'", good) + entry("configmaps, deployments.apps", good):                      "resources[1].resources[1]: ",
		head + entry("'*'", good):            "resources[0].resources[0]: ",
		head + entry("'a*.apps'", good):      "resources[0].resources[0]: ",
		head + entry("secrets/status", good): "resources[0].resources[0]: ",
		head + entry("''", good):             "resources[0].resources[0]: ",
	} {
		c, err := parse([]byte(content), vocabulary.Platform(), plugins)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n\tgot %v, %v, want %q", content, c, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), secret(1)) || strings.Contains(err.Error(), "aGVsbG8")) {
			t.Errorf("the error contains a secret: %v", err)
		}
	}
	if _, err := parse([]byte(strings.Replace(head, "platform.io", "k8s.io", 1)+entry("secrets", good)), vocabulary.K8s(), plugins); err != nil {
		t.Error(err)
	}
}

// FuzzConfiguration: every rule of a file that is accepted has types and a key or the identity, and no
// error contains a secret.
func FuzzConfiguration(f *testing.F) {
	const good = "{aesgcm: {keys: [{name: one, secret: c3dvcmRmaXNoc3dvcmRmaXNoMTI=}]}}"
	for _, entries := range []string{"", entry("secrets", good), entry("'*.apps'", good, "{identity: {}}"), entry("'*.*'", "{secretbox: {keys: []}}"),
		entry("secrets", "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///nowhere', timeout: 3s}}")} {
		f.Add([]byte(head + entries))
	}
	secrets := regexp.MustCompile(`keys: \[\{name: \w+, ?secret[: ']*([A-Za-z0-9+/=]{14,})`) // also mistyped ones
	f.Fuzz(func(t *testing.T, content []byte) {
		plugins := kms.New(slog.New(slog.DiscardHandler))
		c, err := parse(content, vocabulary.Platform(), plugins)
		if err != nil {
			for _, secret := range secrets.FindAllSubmatch(content, -1) {
				if strings.Contains(err.Error(), string(secret[1])) {
					t.Errorf("the error contains a secret: %v", err)
				}
			}
			return
		}
		for _, r := range c.rules {
			if len(r.types) == 0 || len(r.keys) == 0 {
				t.Errorf("%q: %+v", content, r)
			}
		}
	})
}

// FuzzOpen opens values that whoever writes to etcd may have made.
func FuzzOpen(f *testing.F) {
	for _, kind := range providers() {
		f.Add([]byte(Prefix + kind + ":v1:one:"))
	}
	values, _ := configured(f, entry("secrets", provider("aescbc", "one", 1), provider("aesgcm", "one", 1), provider("secretbox", "one", 1)))
	f.Fuzz(func(t *testing.T, stored []byte) {
		if got, err := values.Open(path(secrets, "a"), stored); err == nil {
			t.Errorf("%q is opened as %q", stored, got)
		}
	})
}

func BenchmarkValues(b *testing.B) {
	value := []byte(plain + strings.Repeat("x", 2<<10))
	at := path(secrets, "a")
	for _, kind := range providers() {
		values, _ := configured(b, entry("secrets", provider(kind, "one", 1)))
		sealed := seal(b, values, at, value)
		b.Run(kind+"/seal", func(b *testing.B) {
			for b.Loop() {
				seal(b, values, at, value)
			}
		})
		b.Run(kind+"/open", func(b *testing.B) {
			for b.Loop() {
				_, _ = values.Open(at, sealed)
			}
		})
	}
}
