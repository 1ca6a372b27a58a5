package writes

import (
	"context"
	"errors"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// commit stores the change, and claims before what the object has beyond itself:
// the addresses of a Service. When nobody knows whether the store has taken the
// object, the claims stay.
func (h *Handlers) commit(ctx context.Context, c *change) (services.Object, error) {
	if c.Type.Key != serviceips.Services || c.Subresource != nil {
		return h.store(ctx, c)
	}
	if c.exists() && strategy.Finished(c.next) {
		object, err := h.store(ctx, c)
		if err == nil && !c.options.DryRun {
			h.Addresses.Release(ctx, c.live)
		}
		return object, err
	}
	assigned, err := h.Addresses.Assign(ctx, serviceips.Request{Service: c.next, Live: c.live, DryRun: c.options.DryRun})
	if err != nil {
		return services.Object{}, err
	}
	storing, cancel := context.WithTimeout(ctx, serviceips.StoreWithin)
	defer cancel()
	object, err := services.Object{}, error(nil)
	if c.nextRaw, err = tree.Encode(c.next); err == nil {
		object, err = h.store(storing, c)
	}
	switch {
	case err == nil:
		assigned.Keep(ctx)
	case refused(err):
		assigned.Undo(ctx)
	}
	return object, err
}

// refused reports whether the store has certainly not taken the object.
func refused(err error) bool {
	var s *services.Status
	return errors.Is(err, errRaced) || errors.As(err, &s) &&
		(s.Code >= http.StatusBadRequest && s.Code < http.StatusInternalServerError || s.Code == http.StatusServiceUnavailable)
}

// applied returns the error of answering a write that the store has taken. It never
// asks the client to repeat the request.
func applied(err error) error {
	s := services.AsStatus(err)
	if s == nil || s.Details == nil || s.Details.RetryAfterSeconds == 0 {
		return err
	}
	final, details := *s, *s.Details
	details.RetryAfterSeconds = 0
	final.Details = &details
	return &final
}
