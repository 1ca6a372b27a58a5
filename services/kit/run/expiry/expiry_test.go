package expiry_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/kit/run/expiry"
)

const day = 24 * time.Hour

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// issue returns a certificate in PEM that is good for some time from began.
func issue(t *testing.T, life time.Duration) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: began, NotAfter: began.Add(life)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// watched is a Watch with a clock and a log.
type watched struct {
	*expiry.Watch
	now time.Time
	log bytes.Buffer
	dir string
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{now: began, dir: t.TempDir()}
	w.Watch = expiry.New(slog.New(slog.NewTextHandler(&w.log, nil)), func() time.Time { return w.now })
	return w
}

func (w *watched) write(t *testing.T, name string, content ...[]byte) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, bytes.Join(content, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// metric returns the days from began that the metric of a file shows; -1 when it shows none.
func (w *watched) metric(t *testing.T, file string) int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "file" && label.GetValue() == file {
					return int(time.Unix(int64(m.GetGauge().GetValue()), 0).Sub(began) / day)
				}
			}
		}
	}
	return -1
}

// warned returns the messages that one round has logged.
func (w *watched) warned() string {
	w.log.Reset()
	w.Warn()
	return w.log.String()
}

func TestWhichCertificateCounts(t *testing.T) {
	w := newWatched(t)
	short, long := issue(t, 10*day), issue(t, 20*day)
	chain := w.write(t, "chain.crt", long, short)
	bundle := w.write(t, "ca.crt", short, long)
	garbage := w.write(t, "garbage.crt", []byte("garbage"))
	inline := "kubeconfig#admin"
	w.Add(expiry.Source{Kind: expiry.Own, Name: chain})
	w.Add(expiry.Source{Kind: expiry.Own, Name: chain}) // two flags may name one file
	w.Add(expiry.Source{Kind: expiry.Authorities, Name: bundle})
	w.Add(expiry.Source{Kind: expiry.Own, Name: garbage})
	w.Add(expiry.Source{Kind: expiry.Own, Name: filepath.Join(w.dir, "none")})
	w.Add(expiry.Source{Kind: expiry.Own, Name: inline, Read: func() ([]byte, error) { return long, nil }})
	for file, want := range map[string]int{chain: 10, bundle: 20, inline: 20, garbage: -1} {
		if got := w.metric(t, file); got != want {
			t.Errorf("%s: the metric shows day %d, want %d", file, got, want)
		}
	}
	if said := w.warned(); strings.Count(said, "cannot be read") != 2 || !strings.Contains(said, "has no certificate") || !strings.Contains(said, "no such file") {
		t.Errorf("logged %s", said)
	}
	if got := w.Summary(); got != "10 days until the first expires" {
		t.Errorf("the summary is %q", got)
	}
}

// TestLife follows a certificate from its first day to its renewal.
func TestLife(t *testing.T) {
	w := newWatched(t)
	file := w.write(t, "peer.crt", issue(t, 365*day))
	authority := w.write(t, "peer-ca.crt", issue(t, 400*day))
	w.Add(expiry.Source{Kind: expiry.Own, Name: file})
	w.Add(expiry.Source{Kind: expiry.Authorities, Name: authority})
	for _, step := range []struct {
		after   time.Duration
		says    string
		expired bool
	}{
		{0, "", false},
		{350 * day, "", false},
		{352 * day, "expires soon", false},
		{352*day + time.Hour, "", false}, // once a day
		{353 * day, "expires soon", false},
		{365*day + time.Second, "has expired", true},
		{365*day + time.Minute, "", true},
	} {
		w.now = began.Add(step.after)
		said := w.warned()
		if (step.says == "") != (said == "") || !strings.Contains(said, step.says) {
			t.Errorf("after %v: logged %q, want %q", step.after, said, step.says)
		}
		if err := w.Expired(); (err != nil) != step.expired {
			t.Errorf("after %v: expired: %v", step.after, err)
		}
	}
	w.write(t, "peer.crt", issue(t, 1000*day))
	w.now = w.now.Add(time.Minute)
	if err := w.Expired(); err != nil {
		t.Errorf("renewed, and still expired: %v", err)
	}
	w.now = began.Add(401 * day)
	if err := w.Expired(); err != nil {
		t.Errorf("an authority of others makes the process not ready: %v", err)
	}
	if said := w.warned(); !strings.Contains(said, "has expired") || !strings.Contains(said, "peer-ca.crt") {
		t.Errorf("logged %q about the authority", said)
	}
}

// TestShortLife warns of certificates that live for hours when little of their life is left.
func TestShortLife(t *testing.T) {
	w := newWatched(t)
	w.Add(expiry.Source{Kind: expiry.Own, Name: w.write(t, "peer.crt", issue(t, 10*time.Hour))})
	if said := w.warned(); said != "" {
		t.Errorf("warned at once: %s", said)
	}
	if w.now = began.Add(8*time.Hour + time.Minute); !strings.Contains(w.warned(), "expires soon") {
		t.Error("not warned before the end")
	}
}
