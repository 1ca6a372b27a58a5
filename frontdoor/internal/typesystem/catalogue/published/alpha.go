package published

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/published/derived"
	"github.com/portico-platform/portico/services/release"
)

// alphaDocument holds the alpha versions that the published document of 1.21 lacks, with
// original names of definitions and short names of groups.
//
//go:embed alpha.yaml
var alphaDocument string

// alphaVersion is a version whose definitions are mostly those of another one.
type alphaVersion struct {
	Group   string   `json:"group"`
	Version string   `json:"version"`
	Like    string   `json:"like"`
	Kinds   []string `json:"kinds"`
}

// addAlpha adds the alpha versions of a release whose document lacks them.
func (s *surface) addAlpha(r release.Release) error {
	if r.String() != release.V121.String() {
		return nil
	}
	var document struct {
		Versions    []alphaVersion          `json:"versions"`
		Definitions map[string]*spec.Schema `json:"definitions"`
	}
	if err := parseDocument(alphaDocument, &document); err != nil {
		return fmt.Errorf("alpha.yaml: %w", err)
	}
	nameGroups(document.Definitions)
	maps.Copy(s.definitions, document.Definitions)
	for _, version := range document.Versions {
		if err := s.copyVersion(version); err != nil {
			return fmt.Errorf("%s of %s: %w", version.Version, version.Group, err)
		}
	}
	return nil
}

// copyVersion adds the types of a version and all definitions that they need.
func (s *surface) copyVersion(version alphaVersion) error {
	for _, kind := range version.Kinds {
		i := slices.IndexFunc(s.types, func(t *Type) bool {
			return t.Group == original.Group(version.Group) && t.Version == version.Like && t.Kind == kind
		})
		if i < 0 {
			return fmt.Errorf("there is no %s of %s", kind, version.Like)
		}
		t := *s.types[i]
		t.Version, t.Subresources = version.Version, maps.Clone(t.Subresources)
		s.types = append(s.types, &t)
		api, _, _ := strings.Cut(version.Group, ".")
		prefix := original.Definitions + "api." + api + "." + version.Version + "."
		for _, name := range []string{kind, kind + "List"} {
			if err := (derived.Version{Name: version.Version, Like: version.Like}).Add(s.definitions, prefix+name); err != nil {
				return err
			}
		}
	}
	return nil
}
