package keypair

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// TestTheCertificateFollowsItsFiles replaces certificate and key by files with the same
// modification time: they are reloaded because their content differs.
func TestTheCertificateFollowsItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority, err := peertls.NewAuthority()
		if err != nil {
			t.Fatal(err)
		}
		first, err := authority.Issue(t.TempDir(), "one")
		if err != nil {
			t.Fatal(err)
		}
		second, err := authority.Issue(t.TempDir(), "two")
		if err != nil {
			t.Fatal(err)
		}
		serving, err := Open(Files{What: "certificate", Cert: first.Cert, Key: first.Key}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		before := serving.Get()
		info, err := os.Stat(first.Cert)
		if err != nil {
			t.Fatal(err)
		}
		for to, from := range map[string]string{first.Cert: second.Cert, first.Key: second.Key} {
			content, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(check + 1) // of the fake clock
		want, err := tls.LoadX509KeyPair(second.Cert, second.Key)
		if err != nil {
			t.Fatal(err)
		}
		if after := serving.Get(); bytes.Equal(before.Certificate[0], after.Certificate[0]) || !bytes.Equal(after.Certificate[0], want.Certificate[0]) {
			t.Error("the certificate of before is still served")
		}
	})
}
