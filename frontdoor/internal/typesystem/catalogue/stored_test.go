package catalogue

import (
	"fmt"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/stored"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestStoredVersionsAreKnown: the store accepts and reads the objects of all types, in the version in which each release
// stores them and in every other version that is served.
func TestStoredVersionsAreKnown(t *testing.T) {
	all, err := runtimeconfig.Parse("api/all=true")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		for _, r := range []release.Release{release.V121, release.V136} {
			c, err := New(Options{Vocabulary: v, Release: r, RuntimeConfig: all})
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range c.Groups() {
				for _, version := range g.Versions {
					for _, of := range version.Types {
						if of.Virtual {
							continue
						}
						for _, as := range []*Type{of, of.Stored} {
							object := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"name":"a"}}`, as.Kind, as.APIVersion())
							at, err := tree.MetadataOffset(object)
							if err != nil {
								t.Fatal(err)
							}
							if err := stored.Check(resource.Key{GroupResource: of.Key, Name: "a"}, object, at); err != nil {
								t.Errorf("%s in release %s: %s at %s: %v", v.Name, r, object, of.Key, err)
							}
						}
					}
				}
			}
		}
	}
}
