package fake

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Store returns the cluster as a writable store, for tests of services that write.
func (c *Cluster) Store() services.Store { return writable{c} }

type writable struct{ *Cluster }

// Create implements services.Store.
func (w writable) Create(_ context.Context, r services.CreateRequest) (services.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, exists := w.objects[r.Key]; exists {
		return services.Object{}, services.AlreadyExists(r.Key.Group, r.Key.Resource, r.Key.Name)
	}
	if err := w.require(r.Requires); err != nil {
		return services.Object{}, err
	}
	return w.write(services.Added, r.Key, r.Content)
}

// Update implements services.Store.
func (w writable) Update(_ context.Context, r services.UpdateRequest) (services.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o, err := w.expect(r.Key, r.Revision, ""); err != nil || r.Unchanged {
		return o, err
	}
	if err := w.require(r.Requires); err != nil {
		return services.Object{}, err
	}
	return w.write(services.Modified, r.Key, r.Content)
}

// Delete implements services.Store.
func (w writable) Delete(_ context.Context, r services.DeleteRequest) (services.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, err := w.expect(r.Key, r.Revision, r.UID)
	if err != nil {
		return o, err
	}
	o.Revision = w.note(services.Deleted, o)
	return o, nil
}

// require checks what a write requires.
func (w writable) require(all []services.Requirement) error {
	for _, r := range all {
		if o := w.objects[r.Key]; o.Revision != r.Revision {
			return services.ConflictModified(all[0].Key.Group, all[0].Key.Resource, all[0].Key.Name)
		}
	}
	return nil
}

// expect returns an object if it exists and meets the preconditions.
func (w writable) expect(key resource.Key, revision int64, uid string) (services.Object, error) {
	o, exists := w.objects[key]
	switch {
	case !exists:
		return o, services.NotFound(key.Group, key.Resource, key.Name)
	case revision != 0 && revision != o.Revision || uid != "" && uid != o.UID:
		return o, services.ConflictModified(key.Group, key.Resource, key.Name)
	}
	return o, nil
}

// write stores an object with its new resourceVersion.
func (w writable) write(kind services.ChangeType, key resource.Key, c services.Content) (services.Object, error) {
	at, err := tree.MetadataOffset(c.JSON)
	if err != nil {
		return services.Object{}, services.BadRequest("%v", err)
	}
	o := services.Object{Key: key, UID: c.UID, Labels: c.Labels, Fields: c.Fields, JSON: tree.InsertResourceVersion(c.JSON, at, w.revision+1)}
	o.Revision = w.note(kind, o)
	return o, nil
}

var _ services.Store = writable{}
