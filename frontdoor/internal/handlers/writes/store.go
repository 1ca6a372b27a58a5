package writes

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/races"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// commit stores the object. For a Service it claims the addresses and node ports first. It
// keeps the claims if the outcome of the store's write is unknown.
func (h *Handlers) commit(ctx context.Context, w *writeRequest, c *current, v validated) (stored, error) {
	if err := w.checkUnversioned(c); err != nil {
		return stored{}, err
	}
	if w.req.Type.Key != serviceips.Services || w.req.Subresource != nil || c.exists() && strategy.Finished(w.req.Type, v.tree) {
		return h.store(ctx, w, c, v) // no address is claimed
	}
	assigned, err := h.Addresses.Assign(ctx, serviceips.Request{Service: v.tree, Live: c.tree, DryRun: w.options.DryRun})
	if err != nil {
		return stored{}, err
	}
	var out stored
	if v.json, err = typesystem.EncodeWhole(v.tree); err == nil {
		v.requires = assigned.Requires()
		out, err = h.store(ctx, w, c, v)
	}
	if serviceips.Lost(err) {
		err = races.Mark(err)
	}
	switch {
	case err == nil:
		assigned.Keep(ctx)
	case refused(err):
		assigned.Undo(ctx)
	}
	return out, err
}

// refused reports whether the error means that the store did not write the object.
func refused(err error) bool {
	var s *services.Status
	return races.Lost(err) || errors.As(err, &s) &&
		(s.Code >= http.StatusBadRequest && s.Code < http.StatusInternalServerError || s.Code == http.StatusServiceUnavailable)
}

// store is the last step; a dry-run only simulates it. A write that removes the last
// finalizer of a deleted object removes the object.
func (h *Handlers) store(ctx context.Context, w *writeRequest, c *current, v validated) (out stored, err error) {
	content, err := w.req.Engine.Content(ctx, v.tree, v.json, w.req.Type)
	if err != nil {
		return out, err
	}
	key := w.req.Key()
	key.Name = tree.Text(v.tree, "metadata", "name")
	out.created = !c.exists() && c.unreadable == 0
	switch {
	case w.options.DryRun:
		out.object, err = h.pretend(ctx, w, c, services.Object{Key: key, JSON: content.JSON})
	case c.unreadable != 0:
		out.swapped = true
		out.object, err = h.Store.Update(ctx, services.UpdateRequest{Key: key, Revision: c.unreadable, Content: content, Requires: v.requires})
		err = w.raced(err)
	case out.created:
		out.swapped = true
		if out.object, err = h.Store.Create(ctx, services.CreateRequest{Key: key, Content: content, Requires: v.requires}); services.IsReason(err, services.ReasonAlreadyExists) {
			err = cmp.Or(h.taken(ctx, w, key), err)
		}
	case strategy.Finished(w.req.Type, v.tree):
		out.swapped = true
		out.object, err = h.erase(ctx, c.object, c.tree)
		if err == nil { // the client sees what it has made of the object, without the finalizer
			out.object.JSON, out.object.UID = tree.WithResourceVersion(content.JSON, c.object.Revision), ""
		}
		err = w.raced(err)
	case tree.IsVersion(c.object.JSON, content.JSON, c.object.Revision):
		h.fast.remember(w, c, v, content)
		out, err = h.rewrite(ctx, w, c, content)
	default:
		out.swapped = true
		out.object, err = h.Store.Update(ctx, services.UpdateRequest{Key: key, Revision: c.object.Revision, Content: content, Requires: v.requires})
		err = w.raced(err)
	}
	return out, err
}

// erase removes a stored object in that revision, and what the front door keeps for it: the addresses
// of a Service. Every write and deletion of an object ends it here, whatever the subresource. live is
// the decoded object.
func (h *Handlers) erase(ctx context.Context, object services.Object, live map[string]any) (gone services.Object, err error) {
	gone, err = h.Store.Delete(ctx, services.DeleteRequest{Key: object.Key, Revision: object.Revision})
	if err == nil && object.Key.GroupResource == serviceips.Services {
		h.Addresses.Release(ctx, live)
	}
	return gone, err
}

// rewrite stores an object without a change if it is not encrypted with the present key.
func (h *Handlers) rewrite(ctx context.Context, w *writeRequest, c *current, content services.Content) (out stored, err error) {
	out.object, err = h.Store.Update(ctx, services.UpdateRequest{Key: c.object.Key, Revision: c.object.Revision, Content: content, Unchanged: true})
	out.swapped = err == nil && out.object.Revision != c.object.Revision
	return out, w.raced(err)
}

// pretend returns the result of a dry-run: the object with the resourceVersion of the
// current one. It returns AlreadyExists if the object to be created exists.
func (h *Handlers) pretend(ctx context.Context, w *writeRequest, c *current, object services.Object) (services.Object, error) {
	if at := cmp.Or(c.unreadable, c.object.Revision); at != 0 {
		object.JSON, object.Revision = tree.WithResourceVersion(object.JSON, at), at
		return object, nil
	}
	if c.versioned != 0 {
		object.JSON = tree.WithResourceVersion(object.JSON, int64(c.versioned)) //nolint:gosec // it is only shown
	}
	return object, h.taken(ctx, w, object.Key)
}

// taken returns the AlreadyExists error of a create, whose message says whether the
// existing object is being deleted. It returns nil if no object has the name.
func (h *Handlers) taken(ctx context.Context, w *writeRequest, key resource.Key) error {
	object, err := h.Store.Get(ctx, services.GetRequest{Key: key})
	switch {
	case services.IsReason(err, services.ReasonNotFound), services.IsReason(err, services.ReasonUnreadable):
		return nil
	case err != nil:
		return err
	}
	exists := services.AlreadyExists(w.req.Type.Group, w.req.Type.Resource, key.Name)
	if there, err := w.req.Engine.DecodeStored(ctx, object, w.req.Type); err == nil && strategy.Deleting(there) {
		exists.Message = "object is being deleted: " + exists.Message
	}
	return exists
}

// raced marks a lost compare-and-swap for another attempt if the write is unconditional.
func (w *writeRequest) raced(err error) error {
	if w.unconditional {
		return races.Mark(err)
	}
	return err
}
