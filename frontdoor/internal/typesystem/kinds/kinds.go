// Package kinds holds what the published OpenAPI document lacks about built-in kinds:
// names, columns, behavior on writes, defaults and validation, one YAML file per resource
// in <group>/<resource>.yaml. Rules that cannot be expressed as data are Go functions in
// the same folder, which the file refers to. This package reads and validates the files;
// package catalogue turns them into types, package schema applies their rules. It serves
// "Resources and their fields" of the specification.
package kinds

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/datafiles"
	"github.com/portico-platform/portico/services/release"
)

//go:generate go run ../datafiles/generate packed.txt groups.yaml */*.yaml

//go:embed packed.txt
var packed string

// Set is the content of all files.
type Set struct {
	// Groups are the groups in the order of discovery.
	Groups []Group
	// Kinds are the files of resources.
	Kinds []*Kind
	// Definitions are the rules of all files by the short names of definitions.
	Definitions map[string]*Rules
	// Functions are the functions that the files refer to; set by Resolve.
	Functions Functions
}

// Group is one group, by its short form, with its priority and those of its versions.
type Group struct {
	Group    string           `json:"group"`
	Priority int64            `json:"priority"`
	Versions map[string]int64 `json:"versions"`
	// Alike are the versions whose rules those of the key have, by definitions of the same name,
	// unless they have rules of their own, from release 1.24 on.
	Alike map[string]string `json:"alike"`
}

// Read returns the content of the files. They are read once: all callers share the set and
// must not modify it. An error is a mistake in a file.
var Read = sync.OnceValues(read)

func read() (*Set, error) {
	set := &Set{Definitions: map[string]*Rules{}}
	for path, content := range datafiles.Files(packed) {
		if err := set.read(path, content); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return set, nil
}

// read adds the content of a file.
func (s *Set) read(path, content string) error {
	if path == "groups.yaml" {
		return datafiles.Decode(content, &s.Groups)
	}
	k := &Kind{}
	if err := datafiles.Decode(content, k); err != nil {
		return err
	}
	if err := k.checkPath(path); err != nil {
		return err
	}
	return s.add(k)
}

// checkPath checks that the file of a resource is in the folder named after the first part
// of its group; core for the core group.
func (k *Kind) checkPath(file string) error {
	folder, _, _ := strings.Cut(cmp.Or(k.Group, "core"), ".")
	if want := folder + "/" + k.Resource + ".yaml"; k.Resource != "" && file != want {
		return fmt.Errorf("must be in %s", want)
	}
	return nil
}

func (s *Set) add(k *Kind) error {
	if k.Resource != "" {
		if slices.ContainsFunc(s.Kinds, func(other *Kind) bool { return other.Group == k.Group && other.Resource == k.Resource }) {
			return fmt.Errorf("%s of %q is described twice", k.Resource, k.Group)
		}
		s.Kinds = append(s.Kinds, k)
	}
	for _, name := range []string{k.Introduced, k.Removed} {
		if _, err := release.Of(name); name != "" && err != nil {
			return err
		}
	}
	for name, change := range k.Changes {
		if _, err := release.Of(name); err != nil {
			return err
		}
		if err := change.Generation.check(); err != nil {
			return err
		}
	}
	if err := k.Generation.check(); err != nil {
		return err
	}
	for names, r := range k.Definitions {
		if err := r.each((*Rules).compile); err != nil {
			return fmt.Errorf("%s: %w", names, err)
		}
		for name := range strings.FieldsSeq(names) {
			if s.Definitions[name] != nil {
				return fmt.Errorf("%s is described twice", name)
			}
			s.Definitions[name] = r
		}
	}
	return nil
}
