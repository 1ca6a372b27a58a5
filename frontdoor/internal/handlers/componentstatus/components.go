// Package componentstatus serves component statuses: the health checks of this process
// as resources, run on each request and never stored. It serves "Health endpoints" of the
// specification in the form that older clients use.
package componentstatus

import (
	"context"
	"net/http"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Handlers serves component statuses.
type Handlers struct {
	Health *run.Health
	Codec  *wire.Codec
}

// Of returns the handler of a request; nil if it is not for component statuses.
func (h *Handlers) Of(r *request.Request) request.Handler {
	if r.Type == nil || r.Type.Group != "" || r.Type.Resource != "componentstatuses" {
		return nil
	}
	switch r.Verb {
	case "get":
		return h.get
	case "list":
		return h.list
	}
	return nil
}

func (h *Handlers) get(w http.ResponseWriter, r *request.Request) error {
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.Object)
	if err != nil {
		return err
	}
	checks := h.Health.Checks()
	i := slices.IndexFunc(checks, func(c run.Check) bool { return c.Name == r.Name })
	if i < 0 {
		return services.NotFound(r.Type.Group, r.Type.Resource, r.Name)
	}
	object, err := status(r.Context(), checks[i], r.Type.Key)
	if err != nil {
		return err
	}
	return h.Codec.Encoder(form, r.Type).Object(w, http.StatusOK, object)
}

func (h *Handlers) list(w http.ResponseWriter, r *request.Request) error {
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.List)
	if err != nil {
		return err
	}
	o, err := request.ParseReadOptions(r)
	if err != nil {
		return err
	}
	out := h.Codec.Encoder(form, r.Type).List(w)
	if err := out.Begin(wire.ListMeta{}); err != nil {
		return err
	}
	for _, c := range h.Health.Checks() {
		object, err := status(r.Context(), c, r.Type.Key)
		if err != nil {
			return err
		}
		if !o.Selector.Matches(object.Key, nil, nil) {
			continue
		}
		if err := out.Item(object); err != nil {
			return err
		}
	}
	return out.End()
}

// status runs one check.
func status(ctx context.Context, c run.Check, kind resource.GroupResource) (services.Object, error) {
	condition := map[string]any{"type": "Healthy", "status": "True", "message": "ok"}
	if c.Probe != nil {
		if err := c.Run(ctx); err != nil {
			condition = map[string]any{"type": "Healthy", "status": "False", "error": err.Error()}
		}
	}
	raw, err := tree.Encode(map[string]any{"apiVersion": "v1", "kind": "ComponentStatus",
		"metadata": map[string]any{"name": c.Name}, "conditions": []any{condition}})
	return services.Object{Key: resource.Key{GroupResource: kind, Name: c.Name}, JSON: raw}, err
}
