// Package manifest reads the file of a release: what its Go types do not say.
package manifest

import (
	"maps"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// Module is the path of this module.
const Module = "github.com/portico-platform/portico/tools/release"

// Manifest is the content of the file of a release.
type Manifest struct {
	// Packages are the Go packages of the served group versions.
	Packages []string `json:"packages"`
	// Optional are the packages of group versions that are not served by default, and their
	// kinds in this release.
	Optional map[string][]string `json:"optional"`
	// Shared are packages whose types the others refer to.
	Shared []string `json:"shared"`
	// Plurals are irregular plurals by kind.
	Plurals map[string]string `json:"plurals"`
	// Gates are the names of gates by those in markers, where they differ.
	Gates map[string]string `json:"gates"`
	// Types and Subresources complete the types, by the short names of their definitions.
	Types        map[string]Type                   `json:"types"`
	Subresources map[string]map[string]Subresource `json:"subresources"`
}

// Type completes a type that has no client of its own.
type Type struct {
	Namespaced bool     `json:"namespaced"`
	Verbs      []string `json:"verbs"`
}

// Subresource is a subresource that no marker names.
type Subresource struct {
	// Kind is the kind of the body, after its group version if that is another one.
	Kind string `json:"kind"`
	// Verbs of the subresource, or of one that passes a connection on.
	Verbs   []string `json:"verbs"`
	Connect []string `json:"connect"`
}

// Read reads a file.
func Read(file string) (m Manifest, err error) {
	content, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(content, &m)
	}
	return m, err
}

// All returns the packages of all group versions.
func (m Manifest) All() []string {
	return append(slices.Clone(m.Packages), slices.Sorted(maps.Keys(m.Optional))...)
}
