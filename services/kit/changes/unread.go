package changes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// readAgainEvery is the interval at which objects that cannot be read are tried again: the configuration of the
	// encryption, or a KMS plugin, may have changed.
	readAgainEvery = 3 * time.Second
	// maxFailed is how many of them are tried without success at a time: those that can be read again are all read.
	maxFailed = 50
)

// content is what a mirror holds: what can be read, and what cannot.
type content[T any] struct {
	objects *btree.BTreeG[held[T]]
	unread  map[resource.Key]Unread
}

// copy returns a content that may be changed.
func (c content[T]) copy() content[T] {
	return content[T]{objects: c.objects.Copy(), unread: maps.Clone(c.unread)}
}

// remove removes an object.
func (c *content[T]) remove(key resource.Key) {
	c.objects.Delete(held[T]{namespace: key.Namespace, name: key.Name})
	delete(c.unread, key)
}

// Unread is an object that is stored and cannot be read: nobody may act as if it did not exist.
type Unread struct {
	Key      resource.Key
	Revision int64
	Reason   string
	// Known is true if the content has an earlier value of it.
	Known bool
}

// Err returns services.Unreadable, which names the object.
func (u Unread) Err() error { return services.Unreadable(u.Key, u.Revision, u.Reason) }

// Unread returns the objects of a namespace, or of all namespaces if it is empty, that cannot be read, in the order
// of their names.
func (v View[T]) Unread(namespace string) (found []Unread) {
	for key, u := range v.of.unread {
		if namespace == "" || key.Namespace == namespace {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b Unread) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return found
}

// Unreadable returns services.Unreadable for the first object of a namespace, or of all namespaces if it is empty, of
// which nothing is known, nil if there is none. Who decides by all objects of the namespace must not decide then.
func (v View[T]) Unreadable(namespace string) error {
	if len(v.of.unread) == 0 {
		return nil
	}
	for _, u := range v.Unread(namespace) {
		if !u.Known {
			return u.Err()
		}
	}
	return nil
}

// Err returns services.Unreadable if an object cannot be read, else nil.
func (v View[T]) Err(key resource.Key) error {
	if u, ok := v.of.unread[key]; ok {
		return u.Err()
	}
	return nil
}

// Unreadable is View.Unreadable of the present content.
func (m *Mirror[T]) Unreadable(namespace string) error { return m.Now().Unreadable(namespace) }

// readAgainAlways tries to read what cannot be read until ctx ends. It sleeps while there is nothing of the kind.
func (m *Mirror[T]) readAgainAlways(ctx context.Context) {
	for next := 0; ; {
		select {
		case <-m.unread:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(readAgainEvery):
		case <-ctx.Done():
			return
		}
		next = m.readAgain(ctx, next)
		m.wakeReader()
	}
}

// wakeReader wakes readAgainAlways if objects cannot be read. It is called after they have been published.
func (m *Mirror[T]) wakeReader() {
	if len(m.now.Load().unread) == 0 {
		return
	}
	select {
	case m.unread <- struct{}{}:
	default: // it has been told
	}
}

// readAgain tries the objects from a position on, and returns the position of the next ones.
func (m *Mirror[T]) readAgain(ctx context.Context, from int) int {
	all := m.Now().Unread("")
	if from >= len(all) {
		from = 0
	}
	failed := 0
	for _, u := range all[from:] {
		o, err := m.config.Store.Get(ctx, services.GetRequest{Key: u.Key, Read: services.Read{Mode: services.AnyRevision}})
		if err == nil && o.Revision == u.Revision && m.replace(u, o) {
			continue // the others have moved up
		}
		if from, failed = from+1, failed+1; failed == maxFailed {
			break
		}
	}
	return from
}

// replace puts an object that can be read now in the place of one that could not. It reports whether it could.
func (m *Mirror[T]) replace(u Unread, o services.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now.Load()
	if now.unread[u.Key].Revision != u.Revision {
		return false // it has changed
	}
	next := now.copy()
	m.set(&next, now.content, o)
	if _, still := next.unread[u.Key]; still {
		return false
	}
	m.publish(next, now.revision)
	return true
}
