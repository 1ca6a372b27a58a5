// Package relocation moves the objects of custom types to their own part of the key
// space. Earlier releases stored them under group and resource alone, where a definition
// with the names of a built-in type would share the keys of its objects.
//
// It runs before the front door serves requests. It never changes names, UIDs, timestamps
// and managedFields, and never changes objects under the names of a built-in type. An
// object is copied in a transaction that requires that its source still exists; then the
// source is deleted if it has not changed. So the move may stop at any step and be
// resumed, and several front doors may run it at the same time: none of them serves
// requests before all sources are deleted, and without its source an object that a client
// has deleted since cannot be created again. It serves "Persistence" of the specification.
package relocation

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// parallel is the number of concurrent requests: enough for etcd to write several
// objects with one fsync.
const parallel = 16

// Mover moves objects.
type Mover struct {
	Store services.Store
	// Types has the built-in types, whose objects are not moved.
	Types *catalogue.Catalogue
	// Content returns the stored form of an object that was stored in some version of a
	// type.
	Content func(o services.Object, t *catalogue.Type) (services.Content, error)
	Log     *slog.Logger
}

// Run moves the remaining objects of these types, of which there is one per definition.
// It returns the first revision at which all custom objects are at their current keys:
// the store cannot find them at earlier revisions. It returns 0 if nothing was ever
// moved. When there is nothing to do, it costs one or two linearizable reads and one
// read of the store's mirror per type.
func (m Mover) Run(ctx context.Context, types []*catalogue.Type) (since int64, err error) {
	left, err := m.left(ctx, types)
	if err != nil {
		return 0, err
	}
	if len(left) == 0 {
		return m.moved(ctx)
	}
	// A front door that starts when this one has moved everything needs the revision too.
	if err := m.note(ctx); err != nil {
		return 0, err
	}
	for _, t := range left {
		n, err := m.move(ctx, t)
		if err != nil {
			return 0, err
		}
		m.Log.Info("moved custom objects to the keys of this release", "resource", t.Key.String(), "objects", n)
	}
	if err := m.note(ctx); err != nil {
		return 0, err
	}
	return m.moved(ctx)
}

// former returns the resource under which earlier releases stored the objects of a type.
// ok is false if it has the keys of a built-in type or of the service's own data.
func (m Mover) former(t *catalogue.Type) (gr resource.GroupResource, ok bool) {
	gr = resource.GroupResource{Group: t.Key.Group, Resource: t.Key.Resource}
	// Groups of definitions contain a dot; the service's own data is in groups without
	// one.
	return gr, t.Key.Custom && strings.Contains(gr.Group, ".") && !m.Types.BuiltIn(gr.Group, gr.Resource)
}

// left returns the types that still have objects at their former keys.
func (m Mover) left(ctx context.Context, types []*catalogue.Type) ([]*catalogue.Type, error) {
	if len(types) == 0 {
		return nil, nil
	}
	revision, err := m.Store.Revision(ctx, resource.GroupResource{})
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(types))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, t := range types {
		former, ok := m.former(t)
		if !ok {
			continue
		}
		group.Go(func() error {
			page, err := m.Store.List(ctx, services.ListRequest{GroupResource: former, Limit: 1, WithUnreadable: true,
				Read: services.Read{Mode: services.NotOlderThan, Revision: revision}})
			found[i] = len(page.Objects) > 0
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var left []*catalogue.Type
	for i, t := range types {
		if found[i] {
			left = append(left, t)
		}
	}
	return left, nil
}

// move moves the objects of a type, and returns how many this call has moved.
func (m Mover) move(ctx context.Context, t *catalogue.Type) (int64, error) {
	former, _ := m.former(t)
	var moved atomic.Int64
	for {
		page, err := m.Store.List(ctx, services.ListRequest{GroupResource: former, WithUnreadable: true})
		page.Objects = slices.DeleteFunc(page.Objects, func(o services.Object) bool { // these stay where they are
			return o.Unreadable != ""
		})
		if err != nil || len(page.Objects) == 0 {
			return moved.Load(), err
		}
		group, within := errgroup.WithContext(ctx)
		group.SetLimit(parallel)
		for _, object := range page.Objects {
			group.Go(func() error {
				done, err := m.moveOne(within, object, t)
				if done {
					moved.Add(1)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return moved.Load(), err
		}
	}
}

// moveOne moves one object. It returns false if another process has changed, moved or
// deleted it in the meantime; the caller then lists again.
func (m Mover) moveOne(ctx context.Context, object services.Object, t *catalogue.Type) (bool, error) {
	content, err := m.Content(object, t)
	if err != nil {
		return false, err
	}
	to := object.Key
	to.Custom = true
	_, err = m.Store.Create(ctx, services.CreateRequest{Key: to, Content: content,
		Requires: []services.Requirement{{Key: object.Key, Revision: object.Revision}}})
	if services.IsReason(err, services.ReasonAlreadyExists) {
		err = m.replace(ctx, to, object.Revision, content)
	}
	if err == nil {
		_, err = m.Store.Delete(ctx, services.DeleteRequest{Key: object.Key, Revision: object.Revision})
	}
	if services.IsReason(err, services.ReasonConflict) || services.IsReason(err, services.ReasonNotFound) {
		return false, nil
	}
	return err == nil, err
}

// replace replaces a copy that is older than its source, which a front door of an
// earlier release may have written since. It leaves a newer copy unchanged.
func (m Mover) replace(ctx context.Context, to resource.Key, newer int64, content services.Content) error {
	there, err := m.Store.Get(ctx, services.GetRequest{Key: to})
	if err == nil && there.Revision < newer {
		_, err = m.Store.Update(ctx, services.UpdateRequest{Key: to, Revision: there.Revision, Content: content})
	}
	return err
}

// mark is the object whose revision is that of the last move. The API does not serve it.
var mark = resource.Key{GroupResource: resource.GroupResource{Group: "portico", Resource: "layout"}, Name: "custom-objects"}

// note writes the mark, which gives it a new revision.
func (m Mover) note(ctx context.Context) error {
	content := services.Content{JSON: []byte(`{"metadata":{"name":"` + mark.Name + `"}}`)}
	before, err := m.Store.Get(ctx, services.GetRequest{Key: mark})
	switch {
	case services.IsReason(err, services.ReasonNotFound):
		_, err = m.Store.Create(ctx, services.CreateRequest{Key: mark, Content: content})
	case err == nil:
		_, err = m.Store.Update(ctx, services.UpdateRequest{Key: mark, Revision: before.Revision, Content: content})
	}
	if services.IsReason(err, services.ReasonAlreadyExists) || services.IsReason(err, services.ReasonConflict) {
		return nil // another front door has just done so
	}
	return err
}

// moved returns the revision of the mark; 0 if there is none.
func (m Mover) moved(ctx context.Context) (int64, error) {
	o, err := m.Store.Get(ctx, services.GetRequest{Key: mark})
	if services.IsReason(err, services.ReasonNotFound) {
		return 0, nil
	}
	return o.Revision, err
}
