package discovery

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sversion "k8s.io/apimachinery/pkg/version"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// Extension is a group version that another server serves. Its documents are immutable.
type Extension struct {
	Group, Version string
	// GroupPriority and VersionPriority order groups, and the versions of a group.
	GroupPriority, VersionPriority int64
	// Resources are the types that its own document lists, and their subresources.
	Resources []metav1.APIResource
	// Stale is true if Resources may be out of date.
	Stale bool
	// OpenAPI describes it; nil if that is not known.
	OpenAPI *OpenAPI
}

// apiGroup is a group with all its versions, the preferred one first.
type apiGroup struct {
	name     string
	priority int64
	versions []groupVersion
}

// groupVersion is one version of a group: types, or an extension.
type groupVersion struct {
	name      string
	priority  int64
	types     []*catalogue.Type
	extension *Extension
}

// merged returns the groups of the catalogue and of extensions, in the order of their
// priorities. An extension replaces a version of custom types, never a built-in one.
func merged(c *catalogue.Catalogue, extensions []Extension) []apiGroup {
	var groups []apiGroup
	for _, g := range c.Groups() {
		group := apiGroup{name: g.Name, priority: g.Priority}
		for _, v := range g.Versions {
			group.versions = append(group.versions, groupVersion{name: v.Version, priority: v.Priority, types: v.Types})
		}
		groups = append(groups, group)
	}
	touched := map[string]bool{}
	for i := range extensions {
		x := &extensions[i]
		if c.BuiltInVersion(x.Group, x.Version) {
			continue
		}
		touched[x.Group] = true
		at := slices.IndexFunc(groups, func(g apiGroup) bool { return g.name == x.Group })
		if at < 0 {
			groups, at = append(groups, apiGroup{name: x.Group}), len(groups)
		}
		groups[at].add(x)
	}
	for _, g := range groups {
		if touched[g.name] {
			slices.SortStableFunc(g.versions, func(a, b groupVersion) int {
				return cmp.Or(cmp.Compare(b.priority, a.priority), k8sversion.CompareKubeAwareVersionStrings(b.name, a.name))
			})
		}
	}
	slices.SortStableFunc(groups, func(a, b apiGroup) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
	return groups
}

// add adds the version of an extension.
func (g *apiGroup) add(x *Extension) {
	g.priority = max(g.priority, x.GroupPriority)
	g.versions = slices.DeleteFunc(g.versions, func(v groupVersion) bool { return v.name == x.Version })
	g.versions = append(g.versions, groupVersion{name: x.Version, priority: x.VersionPriority, extension: x})
}
