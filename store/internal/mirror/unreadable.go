package mirror

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/object"
)

const (
	// readAgainEvery is the interval at which values that cannot be read are tried again: the configuration of
	// the encryption, or a KMS plugin, may have changed.
	readAgainEvery = 5 * time.Second
	// maxFailed is how many of them are tried without success at a time: those that can be read again are all read.
	maxFailed = 100
)

// unreadable are the objects of the tree that cannot be read.
type unreadable struct {
	byPath map[string]*services.Object
	types  map[resource.GroupResource]int
}

// put records what is stored at a path; nil for nothing.
func (u *unreadable) put(path string, o *services.Object) {
	if old := u.byPath[path]; old != nil {
		delete(u.byPath, path)
		if u.types[old.Key.GroupResource]--; u.types[old.Key.GroupResource] == 0 {
			delete(u.types, old.Key.GroupResource)
		}
	}
	if o == nil || !object.Unreadable(o) {
		return
	}
	if u.byPath == nil {
		u.byPath, u.types = map[string]*services.Object{}, map[resource.GroupResource]int{}
	}
	u.byPath[path] = o
	u.types[o.Key.GroupResource]++
}

// Unreadable returns the objects that cannot be read, in the order of their paths.
func (m *Mirror) Unreadable() []services.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]services.Object, 0, len(m.unreadable.byPath))
	for _, path := range slices.Sorted(maps.Keys(m.unreadable.byPath)) {
		found = append(found, *m.unreadable.byPath[path])
	}
	return found
}

// UnreadableTypes returns how many objects of each type cannot be read.
func (m *Mirror) UnreadableTypes() map[resource.GroupResource]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.unreadable.types)
}

// Read replaces an object.Unreadable by the object, which could be read since.
func (m *Mirror) Read(o *services.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := o.Key.Path()
	held := m.unreadable.byPath[path]
	if held == nil || held.Revision != o.Revision || object.Unreadable(o) {
		return
	}
	m.tree.Set(path, o)
	m.unreadable.put(path, o)
	m.bytes += int64(len(o.JSON))
	m.shared = nil
}

// readAgainAlways tries to read what cannot be read until ctx ends.
func (m *Mirror) readAgainAlways(ctx context.Context) {
	ticker := time.NewTicker(readAgainEvery)
	defer ticker.Stop()
	for last := ""; ; {
		select {
		case <-ticker.C:
			last = m.readAgain(ctx, last)
		case <-ctx.Done():
			return
		}
	}
}

// readAgain tries the next objects after a path, and returns the last path.
func (m *Mirror) readAgain(ctx context.Context, last string) string {
	var paths []string
	for _, o := range m.Unreadable() {
		paths = append(paths, o.Key.Path())
	}
	after, _ := slices.BinarySearchFunc(paths, last, strings.Compare)
	if after < len(paths) && paths[after] == last {
		after++
	}
	if paths = paths[after:]; len(paths) == 0 {
		return ""
	}
	failed := 0
	for _, path := range paths {
		if failed == maxFailed {
			break
		}
		answer, err := m.client.Get(ctx, path)
		if err != nil {
			return last // the next time
		}
		last = path
		for _, kv := range answer.Kvs {
			if o, err := m.codec.Decode(path, kv.Value, kv.ModRevision); err != nil || object.Unreadable(&o) {
				failed++
			} else {
				m.Read(&o)
			}
		}
	}
	return last
}
