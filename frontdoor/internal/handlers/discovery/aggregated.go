package discovery

import (
	"maps"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// aggregatedKind is the kind that describes several groups at once, so that a client
// needs only two requests.
const aggregatedKind = "APIGroupDiscoveryList"

// aggregatedForms returns the aggregated documents of some groups: the same content in
// two versions.
func aggregatedForms(apiGroup string, groups []catalogue.Group) []document {
	forms := make([]document, 0, 2)
	for _, version := range []string{"v2", "v2beta1"} {
		form := newJSON(func() (any, error) { return aggregate(apiGroup+"/"+version, groups), nil })
		form.as, form.group, form.version = aggregatedKind, apiGroup, version
		forms = append(forms, form)
	}
	return forms
}

func aggregate(apiVersion string, groups []catalogue.Group) *apidiscovery.APIGroupDiscoveryList {
	list := &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: aggregatedKind, APIVersion: apiVersion},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	for _, g := range groups {
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, v := range g.Versions {
			version := apidiscovery.APIVersionDiscovery{Version: v.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
			for _, t := range v.Types {
				version.Resources = append(version.Resources, aggregateType(t))
			}
			item.Versions = append(item.Versions, version)
		}
		list.Items = append(list.Items, item)
	}
	return list
}

func aggregateType(t *catalogue.Type) apidiscovery.APIResourceDiscovery {
	described := apidiscovery.APIResourceDiscovery{
		Resource: t.Resource, SingularResource: t.Singular, Scope: apidiscovery.ScopeCluster,
		ResponseKind: &metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind},
		Verbs:        t.Verbs, ShortNames: t.ShortNames, Categories: t.Categories,
	}
	if t.Namespaced {
		described.Scope = apidiscovery.ScopeNamespace
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
