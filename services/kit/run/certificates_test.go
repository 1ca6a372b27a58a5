package run_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
)

// page returns what a path of the status page says.
func page(t *testing.T, r *run.Running, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + r.StatusAddress() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// issueUntil writes a certificate that expires at a time.
func issueUntil(t *testing.T, path string, end time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-1000 * time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCertificates runs a process with certificates that are good and that are not.
func TestCertificates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serving.crt")
	service := run.Service{
		Name: "certified",
		Flags: func(fs *pflag.FlagSet) {
			fs.String("tls-cert-file", "", "certificate")
			fs.StringArray("client-ca-file", nil, "authorities")
			expiry.Flags(fs, expiry.Own, "tls-cert-file")
			expiry.Flags(fs, expiry.Authorities, "client-ca-file")
		},
		Start: func(_ context.Context, n *run.Node) error { return n.Default("tls-cert-file", file) },
	}
	for left, want := range map[time.Duration]struct {
		code int
		line string
	}{
		50*time.Hour + time.Minute: {http.StatusOK, "[+]certificates ok: 2 days until the first expires\n"},
		-time.Minute:               {http.StatusInternalServerError, "[-]certificates failed: reason withheld\n"},
	} {
		end := time.Now().Add(left)
		issueUntil(t, file, end)
		running := start(t, run.App{Name: "portico", Services: []run.Service{service}}, "--status-address=127.0.0.1:0", "--client-ca-file="+file)
		code, said := page(t, running, "/readyz?verbose")
		if code != want.code || !strings.Contains(said, want.line) {
			t.Errorf("%v: %d %s, want %q", left, code, said, want.line)
		}
		if code := status(t, running, "/livez"); code != http.StatusOK {
			t.Errorf("%v: /livez is %d: a restart renews no certificate", left, code)
		}
		_, metrics := page(t, running, "/metrics")
		for _, kind := range []string{"certificate", "authorities"} {
			if !regexp.MustCompile(`portico_certificate_expiration_timestamp_seconds{file="[^"]*serving.crt",kind="` + kind + `"} \d`).MatchString(metrics) {
				t.Errorf("%v: no metric of kind %s", left, kind)
			}
		}
		running.Stop()
	}
}

// TestExpiredAtTheStart: an expired certificate is an error line before any service starts, since some wait for others that
// refuse it.
func TestExpiredAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serving.crt")
	issueUntil(t, file, time.Now().Add(-time.Hour))
	stderr, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = stderr
	t.Cleanup(func() {
		os.Stderr = before
		stderr.Close()
	})
	var logged []byte
	service := run.Service{
		Name: "certified",
		Flags: func(fs *pflag.FlagSet) {
			fs.String("tls-cert-file", "", "certificate")
			expiry.Flags(fs, expiry.Own, "tls-cert-file")
		},
		Start: func(context.Context, *run.Node) error {
			logged, err = os.ReadFile(stderr.Name())
			return err
		},
	}
	running := start(t, app(service), "--tls-cert-file="+file)
	running.Stop()
	if text := string(logged); !strings.Contains(text, "ERROR test: a certificate has expired file="+file) {
		t.Errorf("before the start of the first service the log is %q", text)
	}
	if all, err := os.ReadFile(stderr.Name()); err != nil || strings.Count(string(all), "has expired") != 1 {
		t.Errorf("the log is %q, %v", all, err)
	}
}
