package backends

import (
	"sync"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
)

// maxNamespaces bounds the namespaces of which the newest change is remembered.
const maxNamespaces = 10_000

// residents knows when a namespace, or a followed object in it, has changed last.
type residents struct {
	heads *changes.Heads

	mu sync.Mutex
	// floor is at or after the newest change of every namespace without an entry.
	floor  int64
	newest map[string]int64
}

// newResidents observes heads, which must not have been followed yet.
func newResidents(heads *changes.Heads) *residents {
	r := &residents{heads: heads, newest: map[string]int64{}}
	heads.Observe(r.observe)
	return r
}

func (r *residents) observe(revision int64, list []services.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if list == nil || len(r.newest)+len(list) > maxNamespaces {
		r.floor = max(r.floor, revision)
		clear(r.newest)
	}
	for _, c := range list {
		namespace := c.Object.Key.Namespace
		if namespace == "" {
			namespace = c.Object.Key.Name
		}
		r.newest[namespace] = max(r.newest[namespace], c.Object.Revision)
	}
}

// unchanged reports whether nothing of a namespace has changed after a revision, as far as this
// process has received. It is false while it cannot receive changes.
func (r *residents) unchanged(namespace string, since int64) bool {
	return r.heads.Newest() > 0 && r.since(namespace) <= since
}

// since returns the revision of the newest change of a namespace, or a later one.
func (r *residents) since(namespace string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.floor, r.newest[namespace])
}
