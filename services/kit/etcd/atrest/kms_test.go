package atrest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
)

func kmsProvider(name string, p *kmsplugin.Plugin) string {
	return "{kms: {apiVersion: v2, name: " + name + ", endpoint: '" + p.Endpoint() + "', timeout: 2s}}"
}

// TestKMS follows a value from a local key to a plugin, to another one, and back.
func TestKMS(t *testing.T) {
	local, first, second := provider("aesgcm", "one", 1), kmsplugin.Start(t), kmsplugin.Start(t)
	values, replace := configured(t, entry("secrets", local))
	at := path(secrets, "a")
	old := seal(t, values, at, []byte(plain))
	next := func(prefix string, providers ...string) {
		t.Helper()
		replace(entry("secrets", providers...))
		if !values.Stale(at, old) {
			t.Errorf("not stale: %.60q", old)
		}
		if got, err := values.Open(at, old); err != nil || string(got) != plain {
			t.Errorf("opened %q, %v", got, err)
		}
		old = seal(t, values, at, []byte(plain))
		if !bytes.HasPrefix(old, []byte(Prefix+prefix)) || bytes.Contains(old, []byte("swordfish")) || values.Stale(at, old) {
			t.Errorf("sealed: %q", old)
		}
		if got, err := values.Open(path(secrets, "b"), old); err == nil {
			t.Errorf("moved: %q", got)
		}
	}
	next("kms:v2:a:", kmsProvider("a", first), local)
	if got := first.Decrypts(); got != 1 {
		t.Errorf("%d calls of Decrypt for a seed of this process, which one proves", got)
	}
	next("kms:v2:b:", kmsProvider("b", second), kmsProvider("a", first))
	next("aesgcm:v1:one:", local, kmsProvider("b", second))
	replace(entry("secrets", kmsProvider("a", first)))
	if _, err := values.Open(at, old); err == nil || !strings.Contains(err.Error(), `its key "aesgcm one" is not listed`) {
		t.Errorf("opened: %v", err)
	}
	// Under another name, the prefix and so the binding is another one.
	sealed := seal(t, values, at, []byte(plain))
	replace(entry("secrets", kmsProvider("b", first)))
	if got, err := values.Open(at, bytes.Replace(sealed, []byte(":a:"), []byte(":b:"), 1)); err == nil {
		t.Errorf("renamed: %q", got)
	}
}

// TestKMSOutage: errors name the provider, and an outage of one plugin concerns its
// resources only.
func TestKMSOutage(t *testing.T) {
	plugin, other := kmsplugin.Start(t), kmsplugin.Start(t)
	plugin.Fail(status.Error(codes.Internal, "the vault is closed"))
	values, _ := configured(t, entry("secrets", kmsProvider("a", plugin))+entry("configmaps", kmsProvider("b", other)))
	_, err := values.Seal(path(secrets, "a"), []byte(plain))
	var unsealed *Unsealed
	if want := `KMS provider "a": Status failed: Internal: "the vault is closed"`; !errors.As(err, &unsealed) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := values.healthy(t.Context()); err == nil || !strings.Contains(err.Error(), `provider "a"`) || strings.Contains(err.Error(), `provider "b"`) {
		t.Errorf("health: %v", err)
	}
	maps := secrets
	maps.Resource = "configmaps"
	seal(t, values, path(maps, "a"), []byte(plain))
}
