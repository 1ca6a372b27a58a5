package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/release"
)

// coreVersions returns the document of /api. address is where members of the cluster reach the server; empty if
// they cannot.
func coreVersions(core apiGroup, address string) *metav1.APIVersions {
	list := &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	if address != "" {
		list.ServerAddressByClientCIDRs = append(list.ServerAddressByClientCIDRs, metav1.ServerAddressByClientCIDR{ClientCIDR: "0.0.0.0/0", ServerAddress: address})
	}
	for _, v := range core.versions {
		list.Versions = append(list.Versions, v.name)
	}
	return list
}

// groupList returns the document of /apis: all named groups.
func groupList(groups []apiGroup) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range groups {
		if g.name != "" {
			list.Groups = append(list.Groups, group(g))
		}
	}
	return list
}

// group describes one named group; its first version is the preferred one.
func group(g apiGroup) metav1.APIGroup {
	described := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		described.Versions = append(described.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: g.name + "/" + v.name, Version: v.name,
		})
	}
	described.PreferredVersion = described.Versions[0]
	return described
}

// unversioned are the groups whose documents have no apiVersion: clients from before it know
// them.
var unversioned = []string{"", "extensions"}

// singularNamed is the first release whose built-in types have singular names in discovery.
var singularNamed, _ = release.Of("1.27")

// singular returns the singular name of a type in discovery.
func singular(t *catalogue.Type, served release.Release) string {
	if !t.Custom && served.Before(singularNamed) {
		return ""
	}
	return t.Singular
}

// resourceList returns the document of one group version: each type, followed by its
// subresources.
func resourceList(groupVersion string, types []*catalogue.Type, served release.Release) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: groupVersion,
	}
	if slices.Contains(unversioned, types[0].Group) {
		list.APIVersion = ""
	}
	for _, t := range types {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: t.Resource, SingularName: singular(t, served), Namespaced: t.Namespaced, Kind: t.Kind, Verbs: t.Verbs,
			ShortNames: t.ShortNames, Categories: t.Categories, StorageVersionHash: storageVersionHash(t),
		})
		for _, name := range slices.Sorted(maps.Keys(t.Subresources)) {
			sub := t.Subresources[name]
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: t.Resource + "/" + name, Namespaced: t.Namespaced, Kind: sub.Kind, Verbs: sub.Verbs,
				Group: sub.Group, Version: sub.Version,
			})
		}
	}
	return list
}

// storageVersionHash changes when the storage version of a type changes. Types that are
// not stored have none.
func storageVersionHash(t *catalogue.Type) string {
	if t.Virtual || !t.Can("create") {
		return ""
	}
	sum := sha256.Sum256([]byte(t.Stored.Group + "/" + t.Stored.Version + "/" + t.Stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
