package peertls_test

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/run/peertls"
)

func issue(t *testing.T, names ...string) peertls.Files {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestACertificateNamesItsServices(t *testing.T) {
	identity, err := peertls.Load(issue(t, "portico", "store", "127.0.0.1"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := identity.Services(); !slices.Equal(got, []string{"portico", "store"}) {
		t.Errorf("got %q", got)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	good, other := issue(t, "store"), issue(t, "store")
	garbage := t.TempDir() + "/garbage"
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string]peertls.Files{
		"no such file":         {CA: good.CA, Cert: good.Cert, Key: "/none"},
		"private key does not": {CA: good.CA, Cert: good.Cert, Key: other.Key},
		"holds no certificate": {CA: garbage, Cert: good.Cert, Key: good.Key},
	} {
		if _, err := peertls.Load(files, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one about %q", err, want)
		}
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	info, err := os.Stat(issue(t, "store").Key)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("got mode %v", mode)
	}
}
