package fieldmanager

import (
	"slices"

	"github.com/portico-platform/portico/services/tree"
)

// Settle keeps the entries of the live object when the next one differs from it
// in nothing but the times of its entries: a write that changes nothing after all,
// once defaults are applied.
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

// without returns the map itself, or a copy that lacks some members.
func without(m map[string]any, names ...string) map[string]any {
	if !slices.ContainsFunc(names, func(name string) bool { _, has := m[name]; return has }) {
		return m
	}
	left := make(map[string]any, len(m))
	for name, value := range m {
		if !slices.Contains(names, name) {
			left[name] = value
		}
	}
	return left
}
