package catalogue

import (
	"slices"
	"testing"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestReleases checks which group versions each release serves, and that both vocabularies
// serve the same ones.
func TestReleases(t *testing.T) {
	of := func(r release.Release, v vocabulary.Vocabulary) (served []string, types int) {
		c, err := New(Options{Vocabulary: v, Release: r})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range c.Groups() {
			for _, version := range g.Versions {
				served = append(served, v.ShortGroup(g.Name)+"/"+version.Version)
				types += len(version.Types)
				for _, ty := range version.Types {
					if ty.Schema == nil || ty.Stored == nil {
						t.Errorf("%s %s: no schema or storage version", ty.APIVersion(), ty.Kind)
					}
				}
			}
		}
		return served, types
	}
	want := []string{"/v1", "apiregistration./v1", "apps/v1", "events./v1", "authentication./v1", "authorization./v1", "autoscaling/v2", "autoscaling/v1",
		"batch/v1", "certificates./v1", "networking./v1", "policy/v1", "rbac.authorization./v1", "storage./v1", "admissionregistration./v1", "apiextensions./v1",
		"scheduling./v1", "coordination./v1", "node./v1", "discovery./v1", "resource./v1", "flowcontrol.apiserver./v1", "extension.portico.dev/v1"}
	for _, v := range []vocabulary.Vocabulary{vocabulary.K8s(), vocabulary.Platform()} {
		if served, types := of(release.V136, v); !slices.Equal(served, want) || types != 69 {
			t.Errorf("1.36 in %s serves %d types of %q", v.Name, types, served)
		}
		if stored, err := Resources(Options{Vocabulary: v, Release: release.V136}); err != nil || len(stored) == 0 {
			t.Errorf("what 1.36 stores: %v, %v", stored, err)
		}
		served, _ := of(release.V121, v)
		for _, version := range []string{"extensions/v1beta1", "policy/v1beta1", "batch/v1beta1", "autoscaling/v2beta2"} {
			if !slices.Contains(served, version) {
				t.Errorf("1.21 does not serve %s", version)
			}
		}
		if slices.Contains(served, "resource./v1") || slices.Contains(served, "autoscaling/v2") {
			t.Errorf("1.21 serves later versions: %q", served)
		}
	}
}
