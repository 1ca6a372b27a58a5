package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// described holds the contents of the files of package kinds, by type.
type described struct {
	vocabulary vocabulary.Vocabulary
	release    release.Release
	feature    func(string) bool
	groups     []kinds.Group // with their names in the vocabulary
	kinds      map[resource.GroupResource]*kinds.Kind
}

func readKinds(o Options) (*described, error) {
	v := o.Vocabulary
	set, err := kinds.Read()
	if err != nil {
		return nil, err
	}
	d := &described{vocabulary: v, release: o.Release, feature: o.Feature, kinds: map[resource.GroupResource]*kinds.Kind{}}
	for _, group := range set.Groups {
		group.Group = v.Group(group.Group)
		d.groups = append(d.groups, group)
	}
	for _, k := range set.Kinds {
		if !k.In(o.Release) {
			continue
		}
		d.kinds[resource.GroupResource{Group: v.Group(k.Group), Resource: k.Resource}] = k
	}
	return d, nil
}

// available removes the types of kinds that need a feature that is off.
func (d *described) available(types []*Type) []*Type {
	return slices.DeleteFunc(types, func(t *Type) bool {
		k := d.kinds[t.GroupResource()]
		return k != nil && k.Feature != "" && d.feature != nil && !d.feature(k.Feature)
	})
}

// complete adds the contents of the files to the types. It returns an error for a file of a
// type that does not exist.
func (d *described) complete(types []*Type) error {
	unused := map[resource.GroupResource]bool{}
	for gr := range d.kinds {
		unused[gr] = true
	}
	for _, t := range types {
		t.Singular = strings.ToLower(t.Kind)
		t.NameRule = kinds.NameSubdomain
		t.Key = t.GroupResource()
		t.Virtual = slices.Equal(t.Verbs, []string{"create"})
		if k := d.kinds[t.Key]; k != nil {
			delete(unused, t.Key)
			d.describe(t, k)
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("unknown resource types: %v", slices.Collect(maps.Keys(unused)))
	}
	return nil
}

func (d *described) describe(t *Type, k *kinds.Kind) {
	if k.Singular != "" {
		t.Singular = k.Singular
	}
	if names := k.NamesIn(d.release); names != "" {
		t.NameRule = names
	}
	if k.StoredIn != nil {
		t.Key.Group = d.vocabulary.Group(*k.StoredIn)
	}
	t.ShortNames, t.Categories = k.ShortNames, k.Categories
	t.Columns, t.Behavior = k.Of(d.release)
	for _, s := range k.SelectableIn(d.release) {
		at := s.At
		if at == "" {
			at = s.Name
		}
		field := SelectableField{Name: s.Name, Path: strings.Split(at, "."), Default: s.Default}
		if s.Or != "" {
			field.Or = strings.Split(s.Or, ".")
		}
		t.Selectable = append(t.Selectable, field)
	}
	for _, name := range k.Subresources {
		if feature := k.Features[name]; feature != "" && d.feature != nil && !d.feature(feature) {
			continue
		}
		t.Subresources[name] = &Subresource{Name: name, Kind: t.Kind, Verbs: []string{"get", "patch", "update"}}
	}
	if deprecation, ok := k.Deprecated[t.Version]; ok && deprecation.In(d.release) {
		deprecation.Replacement = d.replacement(deprecation.Replacement)
		t.Deprecation = &deprecation
	}
}

// replacement translates the group of a replacement into the vocabulary: "networking./v1
// Ingress" means the project's networking group.
func (d *described) replacement(text string) string {
	group, rest, ok := strings.Cut(text, "/")
	if !ok {
		return text
	}
	return d.vocabulary.Group(group) + "/" + rest
}

// store sets the storage version of all types and returns it by group and resource.
func (d *described) store(types []*Type) map[resource.GroupResource]*Type {
	kept := map[resource.GroupResource]*Type{}
	for _, t := range types {
		if t.GroupResource() != t.Key {
			continue
		}
		best := kept[t.Key]
		if best == nil || d.storage(t) || !d.storage(best) && byVersion(t.Version, best.Version) < 0 {
			kept[t.Key] = t
		}
	}
	stored := map[resource.GroupResource]*Type{}
	for _, t := range types {
		t.Stored = kept[t.Key]
		stored[t.GroupResource()] = t.Stored
		if t.Virtual {
			t.Stored = t
		}
	}
	return stored
}

// storage reports whether a file declares this version as the storage version.
func (d *described) storage(t *Type) bool {
	k := d.kinds[t.GroupResource()]
	return k != nil && k.Storage == t.Version
}
