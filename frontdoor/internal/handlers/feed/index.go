package feed

import (
	"sync"

	"github.com/portico-platform/portico/services"
)

// interest is the property by which a watcher is indexed: a field and its required value.
// The zero value matches every change.
type interest struct {
	field, value string
}

const (
	byName      = "metadata.name"
	byNamespace = "metadata.namespace"
)

func (i interest) all() bool { return i.field == "" }

// interest returns the narrowest property of the selection: a name, else a selectable
// field, else a namespace.
func (s *Selection) interest() interest {
	if name, ok := s.Selector.Field(byName); ok {
		return interest{byName, name}
	}
	for _, field := range s.Selector.FieldNames() {
		if value, ok := s.Selector.Field(field); ok && field != byNamespace {
			return interest{field, value}
		}
	}
	if namespace, ok := s.Selector.Field(byNamespace); ok {
		return interest{byNamespace, namespace}
	}
	if s.Namespace != "" {
		return interest{byNamespace, s.Namespace}
	}
	return interest{}
}

// index finds the watchers that a change may concern.
type index struct {
	mu       sync.Mutex
	watchers map[interest]map[*Watcher]struct{}
	// fields counts the watchers per field, so that only fields in use are examined.
	fields map[string]int
}

func newIndex() *index {
	return &index{watchers: map[interest]map[*Watcher]struct{}{}, fields: map[string]int{}}
}

// add registers a watcher and wakes it once, for the changes before its registration.
func (x *index) add(w *Watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := w.selection.interest()
	if x.watchers[i] == nil {
		x.watchers[i] = map[*Watcher]struct{}{}
	}
	x.watchers[i][w] = struct{}{}
	x.fields[i.field]++
	w.signal(w.position + 1)
}

func (x *index) remove(w *Watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := w.selection.interest()
	if _, ok := x.watchers[i][w]; !ok {
		return
	}
	delete(x.watchers[i], w)
	if len(x.watchers[i]) == 0 {
		delete(x.watchers, i)
	}
	if x.fields[i.field]--; x.fields[i.field] == 0 {
		delete(x.fields, i.field)
	}
}

// wake signals the watchers that the state before or after a change may concern.
func (x *index) wake(c *services.Change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	revision := c.Object.Revision
	for field := range x.fields {
		switch field {
		case "":
			x.signal(interest{}, revision)
		case byName:
			x.signal(interest{byName, c.Object.Key.Name}, revision)
		case byNamespace:
			x.signal(interest{byNamespace, c.Object.Key.Namespace}, revision)
		default:
			now, before := c.Object.Fields[field], c.OldFields[field]
			x.signal(interest{field, now}, revision)
			if before != now {
				x.signal(interest{field, before}, revision)
			}
		}
	}
}

func (x *index) signal(i interest, revision int64) {
	for w := range x.watchers[i] {
		w.signal(revision)
	}
}

// wakeAll signals all watchers, after the ring was replaced.
func (x *index) wakeAll(revision int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.watchers {
		x.signal(i, revision)
	}
}
