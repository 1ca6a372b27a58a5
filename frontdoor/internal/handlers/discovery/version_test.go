package discovery_test

import (
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/services/release"
)

// TestVersion checks that /version shows the emulated version from the release on that has
// these fields.
func TestVersion(t *testing.T) {
	if v := discovery.Version(release.V121); v.Major != "1" || v.Minor != "21" || v.GitVersion != "v1.21.14+portico" || v.EmulationMinor != "" || v.MinCompatibilityMinor != "" {
		t.Errorf("1.21: %+v", v)
	}
	if v := discovery.Version(release.V136); v.Minor != "36" || v.GitVersion != "v1.36.3+portico" || v.EmulationMajor != "1" || v.EmulationMinor != "36" || v.MinCompatibilityMinor != "35" {
		t.Errorf("1.36: %+v", v)
	}
}
