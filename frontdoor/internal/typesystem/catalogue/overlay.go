package catalogue

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// overlayFiles say what published documents leave out, one file per kind; see
// overlay/README.md for how they are written.
//
//go:embed overlay
var overlayFiles embed.FS

// overlay is what the files say, by type.
type overlay struct {
	vocabulary vocabulary.Vocabulary
	groups     []string // in the order of the list of groups
	kinds      map[resource.GroupResource]*overlayKind
}

// overlayKind is one file. Groups are written in their short form.
type overlayKind struct {
	Group      string   `json:"group"`
	Resource   string   `json:"resource"`
	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Categories []string `json:"categories"`
	// Names is the rule for valid names.
	Names NameRule `json:"names"`
	// Storage is the version that is kept; the best one by default.
	Storage string `json:"storage"`
	// StoredIn is the group that keeps the objects, when it is another one.
	StoredIn *string `json:"storedIn"`
	// Selectable fields: name and path alike unless at says otherwise.
	Selectable []struct {
		Name    string `json:"name"`
		At      string `json:"at"`
		Default string `json:"default"`
	} `json:"selectable"`
	Columns []Column `json:"columns"`
	// Subresources that the document lacks: parts of the object itself that are
	// read and changed on a path of their own.
	Subresources []string `json:"subresources"`
	// Deprecated versions.
	Deprecated map[string]Deprecation `json:"deprecated"`
}

func readOverlay(v vocabulary.Vocabulary) (*overlay, error) {
	o := &overlay{vocabulary: v, kinds: map[resource.GroupResource]*overlayKind{}}
	err := fs.WalkDir(overlayFiles, "overlay", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := overlayFiles.ReadFile(path)
		if err != nil {
			return err
		}
		if entry.Name() == "groups.yaml" {
			err = yaml.UnmarshalStrict(data, &o.groups)
		} else {
			err = o.read(data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	for i, group := range o.groups {
		o.groups[i] = v.Group(group)
	}
	return o, err
}

func (o *overlay) read(data []byte) error {
	k := &overlayKind{}
	if err := yaml.UnmarshalStrict(data, k); err != nil {
		return err
	}
	gr := resource.GroupResource{Group: o.vocabulary.Group(k.Group), Resource: k.Resource}
	if o.kinds[gr] != nil {
		return fmt.Errorf("%s is described twice", gr)
	}
	o.kinds[gr] = k
	return nil
}

// complete adds what the files say to the types. A file about a type that is not
// there is a fault.
func (o *overlay) complete(types []*Type) error {
	unused := map[resource.GroupResource]bool{}
	for gr := range o.kinds {
		unused[gr] = true
	}
	for _, t := range types {
		t.Singular = strings.ToLower(t.Kind)
		t.NameRule = NameSubdomain
		t.Key = t.GroupResource()
		t.Virtual = slices.Equal(t.Verbs, []string{"create"})
		if k := o.kinds[t.Key]; k != nil {
			delete(unused, t.Key)
			o.describe(t, k)
		}
	}
	for gr := range unused {
		return fmt.Errorf("the overlay describes %s, and there is no such type", gr)
	}
	return nil
}

func (o *overlay) describe(t *Type, k *overlayKind) {
	if k.Singular != "" {
		t.Singular = k.Singular
	}
	if k.Names != "" {
		t.NameRule = k.Names
	}
	if k.StoredIn != nil {
		t.Key.Group = o.vocabulary.Group(*k.StoredIn)
	}
	t.ShortNames, t.Categories, t.Columns = k.ShortNames, k.Categories, k.Columns
	for _, s := range k.Selectable {
		at := s.At
		if at == "" {
			at = s.Name
		}
		t.Selectable = append(t.Selectable, SelectableField{Name: s.Name, Path: strings.Split(at, "."), Default: s.Default})
	}
	for _, name := range k.Subresources {
		t.Subresources[name] = &Subresource{Name: name, Kind: t.Kind, Verbs: []string{"get", "patch", "update"}}
	}
	if d, ok := k.Deprecated[t.Version]; ok {
		d.Replacement = o.replacement(d.Replacement)
		t.Deprecation = &d
	}
}

// replacement writes a replacement's group in the vocabulary: "networking./v1
// Ingress" is the maker's networking group.
func (o *overlay) replacement(text string) string {
	group, rest, ok := strings.Cut(text, "/")
	if !ok {
		return text
	}
	return o.vocabulary.Group(group) + "/" + rest
}

// store settles which version of each type is kept, and tells all versions.
func (o *overlay) store(types []*Type) map[resource.GroupResource]*Type {
	kept := map[resource.GroupResource]*Type{}
	for _, t := range types {
		if t.GroupResource() != t.Key {
			continue
		}
		best := kept[t.Key]
		if best == nil || o.storage(t) || !o.storage(best) && byVersion(t.Version, best.Version) < 0 {
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

// storage reports whether the overlay names this version as the one to keep.
func (o *overlay) storage(t *Type) bool {
	k := o.kinds[t.GroupResource()]
	return k != nil && k.Storage == t.Version
}
