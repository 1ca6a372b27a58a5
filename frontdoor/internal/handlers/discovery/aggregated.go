package discovery

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/release"
)

// aggregatedKind is the kind that describes several groups at once, so that a client
// needs only two requests.
const aggregatedKind = "APIGroupDiscoveryList"

// betaDropped is the first release without the beta version of the aggregated documents.
var betaDropped, _ = release.Of("1.33")

// ownProfile is the parameter of a media type that selects what this front door alone serves.
const ownProfile = "nopeer"

// aggregated returns the aggregated documents of some groups: the same content in each
// version that the release has. Without the profile, that of v2 also has what other front doors serve.
func (o Options) aggregated(groups []apiGroup) (all []document) {
	versions := []string{"v2"}
	if o.Release.Before(betaDropped) {
		versions = append(versions, "v2beta1")
	}
	apiGroup := o.Vocabulary.Group("apidiscovery.")
	add := func(version, profile string, value func() message) {
		for _, form := range newNegotiated(o.Vocabulary.Protobuf, value) {
			form.as, form.group, form.version, form.profile = aggregatedKind, apiGroup, version, profile
			all = append(all, form)
		}
	}
	if o.Union != nil {
		add("v2", ownProfile, func() message { return aggregate(apiGroup+"/v2", groups) })
		core := len(groups) == 1 && groups[0].name == ""
		add("v2", "", func() message {
			list := aggregate(apiGroup+"/v2", groups)
			list.Items = slices.DeleteFunc(o.Union(list.Items), func(g apidiscovery.APIGroupDiscovery) bool { return (g.Name == "") != core })
			return list
		})
		versions = versions[1:]
	}
	for _, version := range versions {
		add(version, "", func() message { return aggregate(apiGroup+"/"+version, groups) })
	}
	return all
}

// Served describes the types of a catalogue, as the aggregated documents do.
func Served(c *catalogue.Catalogue) []apidiscovery.APIGroupDiscovery {
	return aggregate("", merged(c, nil)).Items
}

func aggregate(apiVersion string, groups []apiGroup) *apidiscovery.APIGroupDiscoveryList {
	list := &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: aggregatedKind, APIVersion: apiVersion},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	for _, g := range groups {
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			version := apidiscovery.APIVersionDiscovery{Version: v.name, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
			for _, t := range v.types {
				version.Resources = append(version.Resources, aggregateType(t))
			}
			if x := v.extension; x != nil {
				version.Resources = aggregateExtension(x)
				if x.Stale {
					version.Freshness = apidiscovery.DiscoveryFreshnessStale
				}
			}
			item.Versions = append(item.Versions, version)
		}
		list.Items = append(list.Items, item)
	}
	return list
}

func aggregateType(t *catalogue.Type) apidiscovery.APIResourceDiscovery {
	described := apidiscovery.APIResourceDiscovery{
		Resource: t.Resource, SingularResource: t.Singular, Scope: scopeOf(t.Namespaced),
		ResponseKind: &metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind},
		Verbs:        t.Verbs, ShortNames: t.ShortNames, Categories: t.Categories,
	}
	for _, name := range slices.Sorted(maps.Keys(t.Subresources)) {
		sub := t.Subresources[name]
		kind := metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: sub.Kind}
		if sub.Version != "" {
			kind.Group, kind.Version = sub.Group, sub.Version
		}
		described.Subresources = append(described.Subresources, apidiscovery.APISubresourceDiscovery{
			Subresource: name, ResponseKind: &kind, Verbs: sub.Verbs,
		})
	}
	return described
}

// aggregateExtension describes the types of an extension: subresources follow their type in
// its document.
func aggregateExtension(x *Extension) (described []apidiscovery.APIResourceDiscovery) {
	at := map[string]int{}
	for _, r := range x.Resources {
		kind := &metav1.GroupVersionKind{Group: cmp.Or(r.Group, x.Group), Version: cmp.Or(r.Version, x.Version), Kind: r.Kind}
		plural, sub, isSub := strings.Cut(r.Name, "/")
		i, known := at[plural]
		if !known {
			i, at[plural] = len(described), len(described)
			described = append(described, apidiscovery.APIResourceDiscovery{Resource: plural, Scope: scopeOf(r.Namespaced)})
		}
		if isSub {
			described[i].Subresources = append(described[i].Subresources, apidiscovery.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: r.Verbs})
			continue
		}
		described[i].SingularResource, described[i].ResponseKind, described[i].Scope = r.SingularName, kind, scopeOf(r.Namespaced)
		described[i].Verbs, described[i].ShortNames, described[i].Categories = r.Verbs, r.ShortNames, r.Categories
	}
	return described
}

func scopeOf(namespaced bool) apidiscovery.ResourceScope {
	if namespaced {
		return apidiscovery.ScopeNamespace
	}
	return apidiscovery.ScopeCluster
}
