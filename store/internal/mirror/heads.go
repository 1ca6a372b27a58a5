package mirror

import (
	"math"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// heads are the revisions of the newest changes by type.
type heads struct {
	// floor is at or after the newest change of every type without an entry.
	floor  int64
	byType map[resource.GroupResource]int64
}

// changed records a change of the object at a path.
func (h *heads) changed(path string, revision int64) {
	key, err := resource.ParsePath(path)
	if err != nil { // of no type: any may be meant
		*h = heads{floor: max(h.floor, revision)}
		return
	}
	if h.byType == nil {
		h.byType = map[resource.GroupResource]int64{}
	}
	h.byType[key.GroupResource] = revision
}

func (h *heads) of(gr resource.GroupResource) int64 {
	if revision, ok := h.byType[gr]; ok {
		return revision
	}
	return h.floor
}

// Heads returns the heads of types up to the mirror's revision; false while nothing is loaded.
func (m *Mirror) Heads(types []resource.GroupResource) ([]services.Head, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]services.Head, len(types))
	for i, gr := range types {
		found[i] = services.Head{Changed: m.heads.of(gr), Revision: m.revision, Epoch: m.epoch.ID}
		if m.unreadable.types[gr] > 0 {
			// The copies of callers of earlier releases lack it.
			found[i].Changed = math.MaxInt64
		}
	}
	return found, !m.void
}
