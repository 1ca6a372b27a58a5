package localcert_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/portico-platform/portico/admission/sdk/localcert"
)

func ensure(t *testing.T, dir string, names ...string) []byte {
	t.Helper()
	files, err := localcert.Ensure(dir, names...)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(files.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
	return cert
}

// TestEnsure: a valid certificate stays, any other is replaced.
func TestEnsure(t *testing.T) {
	dir := t.TempDir() + "/certificates"
	first := ensure(t, dir, "a", "127.0.0.1")
	if !bytes.Equal(first, ensure(t, dir, "a", "127.0.0.1")) {
		t.Error("a valid certificate was replaced")
	}
	second := ensure(t, dir, "b")
	if bytes.Equal(first, second) {
		t.Error("the certificate lacks the new name")
	}
	if err := os.WriteFile(dir+"/ca.crt", []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(second, ensure(t, dir, "b")) {
		t.Error("a certificate without its CA stays")
	}
	if _, err := localcert.Ensure(dir + "/tls.key"); err == nil {
		t.Error("no error without names")
	}
	if _, err := localcert.Ensure(dir+"/tls.key", "c"); err == nil {
		t.Error("no error in a file")
	}
}
