package live

import (
	"bytes"
	"sync"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// bonds has, for each stored object, what is bound to it. The zero value is empty.
type bonds[T comparable] struct {
	mu sync.Mutex
	of map[resource.Key]map[T]struct{}
}

func (b *bonds[T]) add(objects []services.BoundObject, bound T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range objects {
		if b.of == nil {
			b.of = map[resource.Key]map[T]struct{}{}
		}
		if b.of[o.Key] == nil {
			b.of[o.Key] = map[T]struct{}{}
		}
		b.of[o.Key][bound] = struct{}{}
	}
}

func (b *bonds[T]) remove(objects []services.BoundObject, bound T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range objects {
		if delete(b.of[o.Key], bound); len(b.of[o.Key]) == 0 {
			delete(b.of, o.Key)
		}
	}
}

// to returns what is bound to the object of a change that may end it.
func (b *bonds[T]) to(c *services.Change) (bound []T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.of[c.Object.Key]
	if len(all) == 0 || !ends(c) {
		return nil
	}
	for one := range all {
		bound = append(bound, one)
	}
	return bound
}

// ends reports whether a change may end the credentials that are bound to its object. Of pods
// and nodes, whose status changes often, only the deletion does.
func ends(c *services.Change) bool {
	of := c.Object.Key.Resource
	return c.Type == services.Deleted || of != "pods" && of != "nodes" || bytes.Contains(c.Object.JSON, []byte(`"deletionTimestamp"`))
}
