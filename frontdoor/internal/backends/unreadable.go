package backends

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/run"
)

// StoredObjects returns the check that names objects that cannot be read. It does not make the process unready: all front
// doors have the same store, and all other objects are served. It fails only if there are some.
func StoredObjects(store services.Reader) run.Check {
	return run.Check{Name: "stored-objects", Partial: true, Probe: func(ctx context.Context) error {
		page, err := store.List(ctx, services.ListRequest{WithUnreadable: true, Limit: services.NamedUnreadable})
		if err != nil {
			return nil //nolint:nilerr // the check "storage" says that the store does not answer
		}
		return services.NameUnreadable(page)
	}}
}

// Unknown returns the errors of objects that cannot be read and of which nothing is known, by their names.
func Unknown(objects []changes.Unread) map[string]error {
	unknown := map[string]error{}
	for _, u := range objects {
		if !u.Known {
			unknown[u.Key.Name] = u.Err()
		}
	}
	return unknown
}
