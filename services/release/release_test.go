package release_test

import (
	"testing"

	"github.com/portico-platform/portico/services/release"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]release.Release{"1.21": release.V121, "1.36": release.V136} {
		if got, err := release.Parse(name); err != nil || got != want || got.String() != name {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "1", "1.", "1.0", "1.22", "1.037", "v1.21", "1.21.14", "2.21", "1.-21", "1.+21", "1.21 "} {
		if got, err := release.Parse(name); err == nil {
			t.Errorf("%q is accepted as %v", name, got)
		}
	}
}

func TestOrder(t *testing.T) {
	between, err := release.Of("1.25")
	if err != nil || !release.V121.Before(between) || !between.Before(release.V136) || between.Before(between) {
		t.Errorf("%v is not between the others: %v", between, err)
	}
	var none release.Release
	if none.String() != "1.21" || none.Patch() != "1.21.14" || none.Before(release.V121) || release.V136.Previous().String() != "1.35" {
		t.Errorf("%v, %v", none, release.V136.Previous())
	}
}
