package writes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Amend applies a change that follows from a request, see amend.Amendment.
func (h *Handlers) Amend(ctx context.Context, a amend.Amendment) error { return a.Apply(ctx, h.Store) }

// Ensure applies the change to the stored object with the type, namespace and name of the
// given one, or creates the given one with the change. It does nothing if the type is not
// served, or if another front door creates the object at the same time.
func (h *Handlers) Ensure(ctx context.Context, e *typesystem.Engine, object map[string]any, change func(object map[string]any) error) error {
	t, ok := e.Types.ByAPIVersion(tree.Text(object, "apiVersion"), tree.Text(object, "kind"))
	if !ok {
		return nil // disabled by --runtime-config
	}
	key := resource.Key{GroupResource: t.GroupResource(), Namespace: tree.Text(object, "metadata", "namespace"), Name: tree.Text(object, "metadata", "name")}
	err := h.Amend(ctx, amend.Amendment{Engine: e, Type: t, Key: key, Change: change})
	if !services.IsReason(err, services.ReasonNotFound) {
		return err
	}
	if err := change(object); err != nil {
		return err
	}
	err = h.Create(ctx, e, t, object)
	if services.IsReason(err, services.ReasonAlreadyExists) {
		return nil
	}
	return err
}

// Removal is a deletion that follows from a request in the same way. The type of the
// object is that of the request.
type Removal struct {
	Request *request.Request
	Key     resource.Key
	Options *metav1.DeleteOptions
	DryRun  bool
}

// Remove deletes an object, or marks it as deleted if it has finalizers or a grace
// period. The caller validates the options.
func (h *Handlers) Remove(ctx context.Context, r Removal) error {
	x := &deletion{Request: r.Request, options: r.Options, dryRun: r.DryRun, now: time.Now(), admission: admit.Exempt(r.Request)}
	_, _, err := h.remove(ctx, x, r.Key)
	return err
}
