// Package kinds holds what the published OpenAPI document lacks about built-in kinds:
// names, columns, behavior on writes, defaults and validation, one YAML file per resource
// in <group>/<resource>.yaml. Rules that cannot be expressed as data are Go functions in
// the same folder, which the file refers to. This package reads and validates the files;
// package catalogue turns them into types, package schema applies their rules. It serves
// "Resources and their fields" of the specification.
package kinds

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/release"
)

//go:embed groups.yaml */*.yaml
var files embed.FS

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
	if err := parse("groups.yaml", &set.Groups); err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*/*.yaml")
	if err != nil {
		return nil, err
	}
	kinds := make([]*Kind, len(names))
	var parsing errgroup.Group
	parsing.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		parsing.Go(func() error {
			kinds[i] = &Kind{}
			if err := parse(name, kinds[i]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	if err := parsing.Wait(); err != nil {
		return nil, err
	}
	for i, name := range names {
		err := kinds[i].checkPath(name)
		if err == nil {
			err = set.add(kinds[i])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return set, nil
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

// parse decodes a file. Unknown and repeated keys are errors; integers become int64, as in
// objects.
func parse(file string, into any) error {
	content, err := files.ReadFile(file)
	if err != nil {
		return err
	}
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(asJSON, into, kjson.DisallowUnknownFields)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	return err
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
