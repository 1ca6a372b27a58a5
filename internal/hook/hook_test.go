package hook

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestWrongCalls(t *testing.T) {
	for want, args := range map[string][]string{
		"missing command":                                 nil,
		`unknown command "make"`:                          {"make"},
		"unknown flag: --size":                            {"ready", "--size=4"},
		`unexpected argument "now"`:                       {"ready", "now"},
		`--server: "http://a"`:                            {"ready", "--server=http://a"},
		"--certificate-authority: open /none":             {"ready", "--server=https://a", "--certificate-authority=/none"},
		"--certificate-authority: no certificate in /dev": {"ready", "--server=https://a", "--certificate-authority=/dev/null"},
		"is required":                                     {"identities"},
	} {
		var out, errs bytes.Buffer
		if status := Main(t.Context(), args, &out, &errs); status != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: status %d, %s, want 2 and %q", args, status, errs.String(), want)
		}
	}
}

// TestReady waits for a server that becomes ready, for one that does not, and for one with
// the certificate of another host.
func TestReady(t *testing.T) {
	var requests atomic.Int32
	var never atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || requests.Add(1) < 2 || never.Load() {
			http.Error(w, "store: unavailable", http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "ca.crt")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, content, 0o600); err != nil {
		t.Fatal(err)
	}
	ready := func(timeout string, server string) (int, string) {
		var out, errs bytes.Buffer
		status := Main(t.Context(), []string{"ready", "--server=" + server, "--certificate-authority=" + authority, "--timeout=" + timeout}, &out, &errs)
		return status, out.String() + errs.String()
	}
	if status, output := ready("1m", server.URL); status != 0 || requests.Load() != 2 {
		t.Errorf("status %d after %d requests: %s", status, requests.Load(), output)
	}
	never.Store(true)
	if status, output := ready("3s", server.URL); status != 1 || !strings.Contains(output, "store: unavailable") {
		t.Errorf("never ready: status %d, %s", status, output)
	}
	otherName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	if status, output := ready("3s", otherName); status != 1 || !strings.Contains(output, "certificate is valid for") {
		t.Errorf("another name: status %d, %s", status, output)
	}
}

func TestArchive(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	if err := os.MkdirAll(filepath.Join(from, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"site.json": "{}", "store/peer.key": "secret"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := pack(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := unpack(to, packed); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(to, "store/peer.key"))
	if err != nil || string(content) != "secret" {
		t.Errorf("unpacked %q, %v", content, err)
	}
	if info, err := os.Stat(filepath.Join(to, "store/peer.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("unpacked with mode %v, %v", info.Mode(), err)
	}
	again, err := pack(to)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed, again) {
		t.Error("the same files result in another archive")
	}
}

// TestArchivesStayInTheirFolder unpacks hostile archives.
func TestArchivesStayInTheirFolder(t *testing.T) {
	parent := t.TempDir()
	for _, header := range []*tar.Header{
		{Name: "../outside", Typeflag: tar.TypeReg, Size: 1, Mode: 0o600},
		{Name: "/outside", Typeflag: tar.TypeReg, Size: 1, Mode: 0o600},
		{Name: "a/../../outside", Typeflag: tar.TypeReg, Size: 1, Mode: 0o600},
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: ".."},
		{Name: "large", Typeflag: tar.TypeReg, Size: maxArchive + 1, Mode: 0o600},
	} {
		var packed bytes.Buffer
		compressed := gzip.NewWriter(&packed)
		files := tar.NewWriter(compressed)
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(make([]byte, header.Size)); err != nil {
			t.Fatal(err)
		}
		if err := files.Close(); err != nil {
			t.Fatal(err)
		}
		if err := compressed.Close(); err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp(parent, "to")
		if err != nil {
			t.Fatal(err)
		}
		if err := unpack(filepath.Join(dir, "here"), packed.Bytes()); err == nil {
			t.Errorf("%s: unpacked", header.Name)
		}
		if _, err := os.Lstat(filepath.Join(dir, "outside")); err == nil {
			t.Errorf("%s: is outside", header.Name)
		}
	}
}
