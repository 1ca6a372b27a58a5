package featuregate_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/release"
)

func TestGates(t *testing.T) {
	on := func(given map[string]string, gate string) bool {
		t.Helper()
		g, _, err := featuregate.Parse(release.V121, given)
		if err != nil {
			t.Fatal(err)
		}
		return g.On(gate)
	}
	for _, c := range []struct {
		given map[string]string
		gate  string
		want  bool
	}{
		{nil, "SuspendJob", false},
		{nil, "ServerSideApply", true},
		{nil, "WatchBookmark", true},
		{map[string]string{"SuspendJob": "true"}, "SuspendJob", true},
		{map[string]string{"AllAlpha": "true"}, "SuspendJob", true},
		{map[string]string{"AllAlpha": "true", "SuspendJob": "false"}, "SuspendJob", false},
		{map[string]string{"AllBeta": "false"}, "ServerSideApply", false},
		{map[string]string{"AllBeta": "false", "ServerSideApply": "true"}, "ServerSideApply", true},
		{map[string]string{"AllBeta": "false"}, "WatchBookmark", true},
		{map[string]string{"AllAlpha": "true"}, "ServerSideApply", true},
	} {
		if got := on(c.given, c.gate); got != c.want {
			t.Errorf("%v: %s is %v", c.given, c.gate, got)
		}
	}
	for gate, value := range map[string]string{"NoSuchGate": "true", "WatchBookmark": "false", "SuspendJob": "perhaps", "AllBeta": ""} {
		if _, _, err := featuregate.Parse(release.V121, map[string]string{gate: value}); err == nil || !strings.Contains(err.Error(), gate) {
			t.Errorf("%s=%s: %v", gate, value, err)
		}
	}
	for gate, warned := range map[string]int{"WatchBookmark": 1, "StreamingProxyRedirects": 1, "SuspendJob": 0} {
		if _, warnings, err := featuregate.Parse(release.V121, map[string]string{gate: "true"}); err != nil || len(warnings) != warned {
			t.Errorf("%s: %q, %v", gate, warnings, err)
		}
	}
}

// TestReleases checks that the stage of a gate, its default and whether it exists follow
// from the release.
func TestReleases(t *testing.T) {
	parse := func(r release.Release, gate, value string) (featuregate.Gates, []string, error) {
		return featuregate.Parse(r, map[string]string{gate: value})
	}
	for _, c := range []struct {
		gate     string
		old, new bool
	}{
		{"SuspendJob", false, true},                                   // alpha, then GA and removed
		{"ServerSideApply", true, true},                               // beta, then GA and removed
		{"ServiceTopology", false, false},                             // alpha, then removed
		{"HPAScaleToZero", false, false},                              // alpha in both
		{"InPlacePodVerticalScaling", false, true},                    // does not exist, then GA
		{"CrossNamespaceVolumeDataSource", false, false},              // does not exist, then alpha
		{"AllowOverwriteTerminationGracePeriodSeconds", false, false}, // deprecated and off
	} {
		for r, want := range map[release.Release]bool{release.V121: c.old, release.V136: c.new} {
			g, _, err := featuregate.Parse(r, nil)
			if err != nil || g.On(c.gate) != want {
				t.Errorf("%s at %s: %v, %v", c.gate, r, g.On(c.gate), err)
			}
		}
	}
	for _, gate := range []string{"BoundServiceAccountTokenVolume", "APIPriorityAndFairness", "RemainingItemCount", "IPv6DualStack", "RemoveSelfLink", "CronJobControllerV2",
		"ExpandPersistentVolumes", "ValidateProxyRedirects", "CSIMigrationAWS", "DynamicKubeletConfig"} { // beta at 1.21
		for _, value := range []string{"true", "false"} {
			if _, _, err := parse(release.V121, gate, value); err != nil {
				t.Errorf("%s=%s at 1.21: %v", gate, value, err)
			}
		}
		if _, _, err := parse(release.V136, gate, "true"); err == nil {
			t.Errorf("%s at 1.36 is accepted", gate)
		}
	}
	if _, _, err := parse(release.V136, "SuspendJob", "true"); err == nil || !strings.Contains(err.Error(), "unrecognized feature gate: SuspendJob") {
		t.Errorf("a removed gate: %v", err)
	}
	if _, _, err := parse(release.V121, "InPlacePodVerticalScaling", "true"); err == nil || !strings.Contains(err.Error(), "unrecognized") {
		t.Errorf("a future gate: %v", err)
	}
	if _, _, err := parse(release.V136, "AllowOverwriteTerminationGracePeriodSeconds", "true"); err == nil || !strings.Contains(err.Error(), "locked to false") {
		t.Errorf("a gate that is locked to off: %v", err)
	}
	if _, warnings, err := parse(release.V136, "DRAPrioritizedList", "false"); err != nil || len(warnings) != 1 {
		t.Errorf("a GA gate that can be turned off: %v, %v", warnings, err)
	}
	if g, _, err := parse(release.V136, "AllAlpha", "true"); err != nil || !g.On("HPAScaleToZero") || g.On("ServiceTopology") {
		t.Errorf("all alpha features: %v", err)
	}
}
