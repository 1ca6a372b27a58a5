package testbed

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Encrypted returns values whose pods a provider encrypts, as an EncryptionConfiguration names it.
func Encrypted(t testing.TB, provider string) *atrest.Values {
	t.Helper()
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	content := "apiVersion: apiserver.config.platform.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- {resources: [pods], providers: [" + provider + ", {identity: {}}]}\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	atrest.Flags(fs)
	if err := fs.Parse([]string{"--encryption-provider-config=" + path}); err != nil {
		t.Fatal(err)
	}
	values, err := atrest.Use(&run.Node{Flags: fs, Log: slog.New(slog.DiscardHandler), Vocabulary: vocabulary.Platform()})
	if err != nil {
		t.Fatal(err)
	}
	return values
}
