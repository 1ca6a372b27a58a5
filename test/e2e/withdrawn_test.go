package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/auditchain"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/withdrawal"
)

// TestWithdrawnWatches and TestWithdrawnWatchesOfProcesses end open watches.
func TestWithdrawnWatches(t *testing.T) {
	t.Parallel()
	publisher, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	withdrawal.Watches(t, publisher, startAllInOne(t, vocabulary.K8s(), "--revocation-status-address="+publisher).Cluster)
}

// TestWithdrawnWatchesOfProcesses has two front doors and two replicas of authn and authz.
func TestWithdrawnWatchesOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts eleven processes")
	}
	t.Parallel()
	s := newSuite(t, vocabulary.Platform())
	for _, name := range []string{"frontdoor", "authn", "authz"} {
		s.add(t, name, name+"-2")
	}
	s.add(t, "csr-signer", "publisher")
	logs := t.TempDir()
	for _, p := range programs() {
		plain := p.args
		switch p.name {
		case "frontdoor":
			p.args = append(plain[:len(plain):len(plain)], "--audit-log-path="+filepath.Join(logs, p.name))
		case "token-cleaner":
			continue
		case "csr-signer":
			p.args = append(p.args, "--revocation-status-address="+s.addresses["publisher"])
		case "authn":
			p.files["client-ca-file"] = "pki/signing-ca.crt"
		}
		s.start(t, p)
		switch p.name {
		case "frontdoor", "authn", "authz":
			p.replica = p.name + "-2"
			if p.name == "frontdoor" {
				p.args = append(plain[:len(plain):len(plain)], "--audit-log-path="+filepath.Join(logs, p.replica))
			}
			s.start(t, p)
		}
	}
	withdrawal.Watches(t, s.addresses["publisher"], s.connect(t, "frontdoor"), s.connect(t, "frontdoor-2"))
	for _, door := range []string{"frontdoor", "frontdoor-2"} {
		ownRecord(t, filepath.Join(logs, door))
	}
}

// ownRecord checks the audit log of one of several front doors: it is a chain of its own, has the
// requests, and no token.
func ownRecord(t *testing.T, path string) {
	t.Helper()
	if r, err := auditchain.Verify(nil, path); err != nil || r.Lines == 0 || len(r.Problems) > 0 {
		t.Errorf("the log of %d lines has the problems %v, error %v", r.Lines, r.Problems, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("/namespaces/withdrawn/configmaps?")) || !bytes.Contains(text, []byte(`"verb":"watch"`)) {
		t.Error("the log has no watch of the test")
	}
	if bytes.Contains(text, []byte("eyJ")) { // the begin of a JSON Web Token
		t.Error("the log has a token")
	}
}
