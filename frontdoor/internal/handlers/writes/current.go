package writes

import (
	"context"
	"errors"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/services"
)

// mayGlance reports whether a first attempt may start from the state that is at hand,
// which saves asking etcd for the newest: the compare-and-swap finds out whether it
// was. A dry-run has none, and a Service claims addresses before it.
func (x *writing) mayGlance() bool {
	return !x.options.DryRun && x.Type.Key != serviceips.Services
}

// readCurrent reads the object that an update or patch changes. An object that is
// not there is NotFound, unless the request creates it, and the user may.
func (h *Handlers) readCurrent(ctx context.Context, c *change) error {
	if c.Verb == "create" {
		return nil
	}
	read := services.Read{Mode: services.MostRecent}
	if !c.newest && c.admission.Asks() {
		read.Mode, c.fromCache = services.AnyRevision, true
	}
	current, err := h.Store.Get(ctx, services.GetRequest{Key: c.Key(), Read: read})
	if services.IsReason(err, services.ReasonNotFound) && c.mayCreate() {
		create := c.Attributes()
		create.Verb = "create"
		return h.Allow(c.Request, create)
	}
	c.current = current
	return err
}

// mayCreate reports whether the request creates the object when it is missing: any
// apply does, and an update of some types.
func (c *change) mayCreate() bool {
	if c.Verb == "update" {
		return c.Subresource == nil && c.Type.Behavior.CreateOnUpdate
	}
	return c.Subresource == nil && c.mediaType == fieldmanager.MediaTypeApply
}

// decodeCurrent decodes it, in the version of the request.
func (h *Handlers) decodeCurrent(ctx context.Context, c *change) (err error) {
	if c.exists() {
		c.live, err = c.Engine.DecodeStored(ctx, c.current, c.Type)
	}
	return err
}

// stands reports whether the result of an attempt counts. What was decided on the state
// at hand counts when the store has swapped it, or when it is the newest still: so
// nobody is told of a conflict, a lack or an agreement that is over. An error that is
// no refusal always counts: the store may have taken the object, and then the newest
// state is the result of this attempt.
func (h *Handlers) stands(ctx context.Context, c *change, err error) bool {
	switch {
	case !c.fromCache || err == nil && c.swapped:
		return true
	case errors.Is(err, errRaced):
		return false
	case err != nil && !refused(err):
		return true
	}
	newest, readError := h.Store.Get(ctx, services.GetRequest{Key: c.Key()})
	if services.IsReason(readError, services.ReasonNotFound) {
		return !c.exists()
	}
	return readError != nil || newest.Revision == c.current.Revision
}
