package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
	"github.com/portico-platform/portico/test/e2e/delegates"
	"github.com/portico-platform/portico/test/e2e/rights"
)

// guarding turns the plugin on that is off by default.
const guarding = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"

// rightsBodies are the bodies that need a separate cluster: one deletes all permissions,
// and one needs an admission plugin that is disabled by default.
func rightsBodies(t *testing.T, c *cluster.Cluster) {
	t.Run("Owners", func(t *testing.T) { rights.Owners(t, c) })
	t.Run("Defaults", func(t *testing.T) { rights.Defaults(t, c) })
}

func TestRightsInOneProcess(t *testing.T) {
	t.Parallel()
	c := startAllInOne(t, vocabulary.Platform(), guarding).Cluster
	rightsBodies(t, c)
	t.Run("Watches", func(t *testing.T) { observed(t, c) })
}

// TestConstrainedImpersonation: the audit log names the right by which a request impersonates.
func TestConstrainedImpersonation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	c := startAllInOne(t, vocabulary.K8s(), "--audit-log-path="+path).Cluster
	rights.Constrained(t, c)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"user-info", "serviceaccount", "arbitrary-node", "associated-node"} {
		if !strings.Contains(string(text), `"authenticationMetadata":{"impersonationConstraint":"impersonate:`+mode+`"}`) {
			t.Errorf("no event of the mode %s", mode)
		}
	}
}

// TestRightsOfProcesses restores default roles with two front doors at the same time, shows
// the watches of both, applies an AdmissionService that counts at both, and divides the seats of
// a priority level between them.
func TestRightsOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts twelve processes")
	}
	t.Parallel()
	s := newSuite(t, vocabulary.K8s())
	s.add(t, "frontdoor", "frontdoor-2")
	for _, p := range programs() {
		if p.name == "admission" {
			p.args = []string{guarding}
		}
		s.start(t, p)
		if p.name == "frontdoor" {
			p.replica = "frontdoor-2"
			s.start(t, p)
		}
	}
	second, first := s.connect(t, "frontdoor-2"), s.connect(t, "frontdoor")
	rightsBodies(t, first)
	t.Run("Constrained", func(t *testing.T) { rights.Constrained(t, second) })
	t.Run("Watches", func(t *testing.T) { observed(t, first, second) })
	t.Run("AdmissionServices", func(t *testing.T) { delegates.ServicesOf(t, first, second) })
	t.Run("Seats", func(t *testing.T) {
		sharedSeats(t, first, second, func() { observedDeath(t, s, first, "frontdoor-2") })
	})
}
