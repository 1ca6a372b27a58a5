package authfilters

import (
	"context"
	"fmt"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/http/permitted"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// Permitted determines the namespaces that a list or watch with permitted=true may read. It
// refuses the parameter where it has no meaning.
func (c *Control) Permitted(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if err := r.CheckPermitted(); err != nil {
			return err
		}
		if !r.AcrossPermitted() {
			return next(w, r)
		}
		set, err := c.Namespaces.Find(r.Context(), r.Attributes())
		if err != nil {
			return err
		}
		r.Permitted = set
		if r.Audit != nil {
			r.Audit.Decided(c.Vocabulary.Group("authorization."), decided(set))
		}
		if r.Live != nil {
			for _, d := range set.Decisions {
				r.Live.Allowed(d.Attributes, d.Decision, !r.Impersonated)
			}
		}
		return next(w, r)
	}
}

// decided is the decision about a request with permitted=true, for the audit log.
func decided(s *permitted.Set) services.Decision {
	if s.All {
		return s.Decisions[0].Decision
	}
	return services.Decision{Allowed: true, Reason: fmt.Sprintf("permitted=true: allowed in %d namespaces", len(s.Namespaces))}
}

// relist makes a watch with permitted=true that may no longer read a namespace end like one
// whose revision has expired: the client then lists what it may still read.
func relist(end context.CancelCauseFunc) context.CancelCauseFunc {
	return func(why error) {
		if services.IsReason(why, services.ReasonForbidden) {
			why = permitted.Changed()
		}
		end(why)
	}
}
