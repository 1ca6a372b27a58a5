package e2e

import (
	"testing"

	"github.com/portico-platform/portico/deploy/e2e/withdrawal"
	"github.com/portico-platform/portico/deploy/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
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
	for _, p := range programs() {
		switch p.name {
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
			s.start(t, p)
		}
	}
	withdrawal.Watches(t, s.addresses["publisher"], s.connect(t, "frontdoor"), s.connect(t, "frontdoor-2"))
}
