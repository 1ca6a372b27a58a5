package forwarding

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/util/sort"
)

// union merges what several front doors serve: groups, versions and types that only one of them
// has, and subresources and verbs of those that several have. What comes first decides about the
// rest of a description. The order of each list is kept, as far as the lists agree.
func union(lists [][]apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery {
	return combine(lists, func(g apidiscovery.APIGroupDiscovery) string { return g.Name }, func(a, b apidiscovery.APIGroupDiscovery) apidiscovery.APIGroupDiscovery {
		a.Versions = combine([][]apidiscovery.APIVersionDiscovery{a.Versions, b.Versions},
			func(v apidiscovery.APIVersionDiscovery) string { return v.Version }, bothVersions)
		return a
	})
}

func bothVersions(a, b apidiscovery.APIVersionDiscovery) apidiscovery.APIVersionDiscovery {
	a.Resources = combine([][]apidiscovery.APIResourceDiscovery{a.Resources, b.Resources},
		func(r apidiscovery.APIResourceDiscovery) string { return r.Resource }, bothResources)
	return a
}

func bothResources(a, b apidiscovery.APIResourceDiscovery) apidiscovery.APIResourceDiscovery {
	verbs := map[string]bool{}
	for _, verb := range slices.Concat(a.Verbs, b.Verbs) {
		verbs[verb] = true
	}
	if len(verbs) > len(a.Verbs) {
		a.Verbs = slices.Sorted(maps.Keys(verbs))
	}
	name := func(s apidiscovery.APISubresourceDiscovery) string { return s.Subresource }
	a.Subresources = combine([][]apidiscovery.APISubresourceDiscovery{a.Subresources, b.Subresources}, name, func(a, _ apidiscovery.APISubresourceDiscovery) apidiscovery.APISubresourceDiscovery { return a })
	slices.SortFunc(a.Subresources, func(a, b apidiscovery.APISubresourceDiscovery) int { return cmp.Compare(a.Subresource, b.Subresource) })
	return a
}

// combine merges lists of what has a name. Entries of the same name become one.
func combine[T any](lists [][]T, name func(T) string, both func(a, b T) T) []T {
	names, merged := make([][]string, len(lists)), map[string]T{}
	for i, list := range lists {
		for _, v := range list {
			names[i] = append(names[i], name(v))
			if before, ok := merged[name(v)]; ok {
				v = both(before, v)
			}
			merged[name(v)] = v
		}
	}
	var all []T
	for _, n := range sort.MergePreservingRelativeOrder(names) {
		all = append(all, merged[n])
	}
	return all
}

// ordered returns the lists of front doors, that of the newest release first, so that all front
// doors merge them in the same order.
func ordered(doors []described) [][]apidiscovery.APIGroupDiscovery {
	doors = slices.Clone(doors)
	slices.SortFunc(doors, func(a, b described) int {
		return cmp.Or(strings.Compare(b.release, a.release), strings.Compare(a.served, b.served))
	})
	lists := make([][]apidiscovery.APIGroupDiscovery, len(doors))
	for i, d := range doors {
		lists[i] = d.groups
	}
	return lists
}

// described is what a front door serves.
type described struct {
	release, served string
	groups          []apidiscovery.APIGroupDiscovery
}
