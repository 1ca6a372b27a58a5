package catalogue

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Options select what a catalogue holds.
type Options struct {
	Vocabulary vocabulary.Vocabulary
	// Release is the release whose types are served.
	Release release.Release
	// RuntimeConfig selects the served versions.
	RuntimeConfig runtimeconfig.Config
	// Feature reports whether a feature is on; nil means all of them.
	Feature func(string) bool
}

// Catalogue holds all resource types. It is immutable.
type Catalogue struct {
	release     release.Release
	groups      []Group
	types       map[typeID]*Type                   // served ones
	kinds       map[kindID]*Type                   // served ones
	sharing     map[resource.GroupResource][]*Type // served ones by key
	stored      map[resource.GroupResource]*Type   // by each group that shares it
	definitions Definitions
	bodies      map[kindID]string // definition names
	converter   *converter
	reserved    map[string]Reserved // by group
	builtIn     *Catalogue          // nil if this has only built-in types
	order       []kinds.Group       // the groups of built-in types in the order of discovery
}

// ErrNoVersion is the error of a conversion to a version that is not served.
var ErrNoVersion = errors.New("no such version")

type typeID struct{ group, version, resource string }

// Group is an API group with its served versions, the preferred version first. Groups and
// versions with a larger priority come first in discovery.
type Group struct {
	Name     string
	Priority int64
	Versions []GroupVersion
}

// GroupVersion is one version of a group with its types, ordered by name.
type GroupVersion struct {
	Version  string
	Priority int64
	Types    []*Type
}

// The priorities of custom types.
const (
	CustomPriority        = 1000
	CustomVersionPriority = 100
)

// New builds the catalogue from the release's types, those that the suite adds, and the files
// of package kinds.
func New(o Options) (*Catalogue, error) {
	builtIn, err := unpack(o.Release, o.Vocabulary)
	if err != nil {
		return nil, err
	}
	if err := o.RuntimeConfig.Check(configurable(builtIn.types)); err != nil {
		return nil, err
	}
	described, err := readKinds(o)
	if err != nil {
		return nil, err
	}
	c := &Catalogue{
		release: o.Release,
		types:   map[typeID]*Type{}, kinds: map[kindID]*Type{},
		definitions: builtIn.definitions, bodies: builtIn.bodies,
	}
	for _, t := range builtIn.types {
		t.Definition = c.bodies[kindID{t.Group, t.Version, t.Kind}]
		t.schema = c.definitions[t.Definition]
	}
	if err := described.complete(builtIn.types); err != nil {
		return nil, err
	}
	for _, t := range builtIn.types {
		t.described = sync.OnceValue(func() []kinds.Column { return c.describedColumns(t) })
	}
	c.stored = described.store(builtIn.types)
	c.reserved = c.reserve(builtIn.types)
	served := slices.DeleteFunc(described.available(builtIn.types), func(t *Type) bool { return !o.RuntimeConfig.Serves(t.configurable(), o.Release) })
	c.order = described.groups
	c.index(served)
	c.converter = &converter{builtIn: c}
	return c, nil
}

// index fills the lookup maps and the list of groups. Groups are sorted as in c.order;
// groups that it does not contain come last.
func (c *Catalogue) index(served []*Type) {
	rank := func(group string) int {
		if i := slices.IndexFunc(c.order, func(g kinds.Group) bool { return g.Group == group }); i >= 0 {
			return i
		}
		return len(c.order)
	}
	slices.SortFunc(served, func(a, b *Type) int {
		return cmp.Or(
			cmp.Compare(rank(a.Group), rank(b.Group)), cmp.Compare(a.Group, b.Group),
			byVersion(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
	})
	c.sharing = map[resource.GroupResource][]*Type{}
	for _, t := range served {
		c.sharing[t.Key] = append(c.sharing[t.Key], t)
		c.types[typeID{t.Group, t.Version, t.Resource}] = t
		c.kinds[kindID{t.Group, t.Version, t.Kind}] = t
		if n := len(c.groups); n == 0 || c.groups[n-1].Name != t.Group {
			c.groups = append(c.groups, Group{Name: t.Group, Priority: CustomPriority})
			if i := rank(t.Group); i < len(c.order) {
				c.groups[len(c.groups)-1].Priority = c.order[i].Priority
			}
		}
		group := &c.groups[len(c.groups)-1]
		if n := len(group.Versions); n == 0 || group.Versions[n-1].Version != t.Version {
			group.Versions = append(group.Versions, GroupVersion{Version: t.Version, Priority: CustomVersionPriority})
			if i := rank(t.Group); i < len(c.order) && !t.Custom {
				group.Versions[len(group.Versions)-1].Priority = max(c.order[i].Versions[t.Version], 1)
			}
		}
		last := &group.Versions[len(group.Versions)-1]
		last.Types = append(last.Types, t)
	}
}

// byVersion compares versions by stability and age, the preferred version first: v2, v1,
// v1beta1.
func byVersion(a, b string) int { return -version.CompareKubeAwareVersionStrings(a, b) }

// Lookup returns the served type with a plural resource name.
func (c *Catalogue) Lookup(group, version, resource string) (*Type, bool) {
	t, ok := c.types[typeID{group, version, resource}]
	return t, ok
}

// ByKind returns the served type with a kind.
func (c *Catalogue) ByKind(group, version, kind string) (*Type, bool) {
	t, ok := c.kinds[kindID{group, version, kind}]
	return t, ok
}

// ByAPIVersion returns the type of an object's apiVersion and kind.
func (c *Catalogue) ByAPIVersion(apiVersion, kind string) (*Type, bool) {
	gv, err := runtimeschema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, false
	}
	return c.ByKind(gv.Group, gv.Version, kind)
}

// Sharing returns the served types whose objects are those of t: its other versions, and the
// groups that share them. t is among them if it is served.
func (c *Catalogue) Sharing(t *Type) []*Type { return c.sharing[t.Key] }

// Release returns the release whose types these are.
func (c *Catalogue) Release() release.Release { return c.release }

// Groups returns the served groups, the core group first.
func (c *Catalogue) Groups() []Group { return c.groups }

// Group returns one served group.
func (c *Catalogue) Group(name string) (Group, bool) {
	i := slices.IndexFunc(c.groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return Group{}, false
	}
	return c.groups[i], true
}

// Stored returns the storage version of a type, which may be unserved; nil when there is no
// such type. Groups that share objects have the same one.
func (c *Catalogue) Stored(gr resource.GroupResource) *Type { return c.stored[gr] }

// Body returns the definition name of any kind: of types, lists and bodies of subresources.
// ok is false when there is none.
func (c *Catalogue) Body(group, version, kind string) (definition string, ok bool) {
	definition, ok = c.bodies[kindID{group, version, kind}]
	return definition, ok
}

// Definitions returns all schemas by name.
func (c *Catalogue) Definitions() Definitions { return c.definitions }

// Resolve follows the schema's $ref, either its own or that of a single allOf (which
// published documents use for a reference with a description of its own). It returns nil
// for an unknown reference.
func (c *Catalogue) Resolve(s *spec.Schema) *spec.Schema {
	for s != nil {
		pointer := s.Ref.String()
		if pointer == "" && len(s.AllOf) == 1 {
			pointer = s.AllOf[0].Ref.String()
		}
		if pointer == "" {
			return s
		}
		s = c.definitions.Get(strings.TrimPrefix(pointer, definitionsPointer))
	}
	return nil
}

// Converter returns the converter of objects into typed values, for managed fields and
// apply.
func (c *Catalogue) Converter() managedfields.TypeConverter { return c.converter }
