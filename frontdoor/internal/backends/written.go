package backends

import (
	"context"
	"sync"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// maxWritten bounds the writes that are remembered for one type.
const maxWritten = 1024

// written are the results of this process's own writes that have not arrived in the copy of
// their type. A client that writes an object again at once then starts from what it has
// written, and not from the state before, which costs it another attempt.
type written struct {
	mu      sync.Mutex
	objects map[resource.Key]services.Object
}

// add remembers what was written. reached is the revision of the copy.
func (w *written) add(o services.Object, reached int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects == nil {
		w.objects = map[resource.Key]services.Object{}
	}
	if len(w.objects) >= maxWritten {
		for key, old := range w.objects {
			if old.Revision <= reached {
				delete(w.objects, key)
			}
		}
	}
	if len(w.objects) < maxWritten && w.objects[o.Key].Revision < o.Revision {
		w.objects[o.Key] = o
	}
}

// remove forgets what was written to an object that is deleted.
func (w *written) remove(key resource.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, key)
}

// find returns what was written to an object after the copy's revision.
func (w *written) find(key resource.Key, reached int64) (services.Object, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.objects[key]
	if ok && o.Revision <= reached {
		delete(w.objects, key)
		return services.Object{}, false
	}
	return o, ok
}

// Create implements services.Store.
func (s *Store) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	o, err := s.Store.Create(ctx, r)
	s.remember(o, err)
	return o, err
}

// Update implements services.Store.
func (s *Store) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	o, err := s.Store.Update(ctx, r)
	s.remember(o, err)
	return o, err
}

// Delete implements services.Store.
func (s *Store) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	o, err := s.Store.Delete(ctx, r)
	if one := s.copies.ready(r.Key.GroupResource); one != nil && err == nil {
		one.written.remove(r.Key)
	}
	return o, err
}

func (s *Store) remember(o services.Object, err error) {
	if err != nil {
		return
	}
	if one := s.copies.ready(o.Key.GroupResource); one != nil {
		one.written.add(o, one.mirror.Revision())
	}
}
