package fieldmanager

import (
	"maps"
	"slices"

	"github.com/portico-platform/portico/services/tree"
)

// Settle restores the managedFields of the live object if the next one differs only in the
// times of its entries: after defaulting, preparation and admission, the write turned out to
// change nothing. Entries are compared in their order, which is that of their times: if the entry
// of the write's manager was not the last one, it is now, and that is a change, as in Kubernetes
// since release 1.25. Before, updates have no new time without new fields (see timesValues).
func Settle(live, next map[string]any) {
	before, after := ownersOf(live), ownersOf(next)
	if live == nil || len(before) != len(after) || !sameContent(live, next) {
		return
	}
	for i := range before {
		if !tree.Equal(timeless(before[i]), timeless(after[i])) {
			return
		}
	}
	setOwners(next, before)
}

// timeless returns an entry without its time.
func timeless(item any) any {
	entry, _ := item.(map[string]any)
	return without(entry, "time")
}

// without returns a map without some members: the map itself if it has none of them,
// otherwise a copy.
func without(m map[string]any, names ...string) map[string]any {
	if !slices.ContainsFunc(names, func(name string) bool { _, has := m[name]; return has }) {
		return m
	}
	left := maps.Clone(m)
	for _, name := range names {
		delete(left, name)
	}
	return left
}
