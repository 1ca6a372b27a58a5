package e2e

import (
	"testing"

	"github.com/portico-platform/portico/deploy/e2e/withdrawal"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestWithdrawnWatches and TestWithdrawnWatchesOfProcesses end open watches.
func TestWithdrawnWatches(t *testing.T) {
	t.Parallel()
	withdrawal.Watches(t, startAllInOne(t, vocabulary.K8s()).Cluster)
}

// TestWithdrawnWatchesOfProcesses has two front doors and two replicas of authn and authz.
func TestWithdrawnWatchesOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts nine processes")
	}
	t.Parallel()
	s := newSuite(t, vocabulary.Platform())
	for _, name := range []string{"frontdoor", "authn", "authz"} {
		s.add(t, name, name+"-2")
	}
	for _, p := range programs() {
		if !p.offer && len(p.peers) == 0 && p.name != "lifecycle" {
			continue
		}
		s.start(t, p)
		switch p.name {
		case "frontdoor", "authn", "authz":
			p.replica = p.name + "-2"
			s.start(t, p)
		}
	}
	withdrawal.Watches(t, s.connect(t, "frontdoor"), s.connect(t, "frontdoor-2"))
}
