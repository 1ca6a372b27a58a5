package writes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Amendment is a change of an object that follows from a request to another object or
// subresource. Admission has reviewed that request, so it does not review the change.
type Amendment struct {
	Engine *typesystem.Engine
	Type   *catalogue.Type
	Key    resource.Key
	DryRun bool
	// Preconditions are those of the change; nil for none. Amend returns Conflict (409) for an
	// object that does not have them.
	Preconditions *metav1.Preconditions
	// Amended receives the stored object, unless it is nil or nothing is stored.
	Amended *services.Object
	// Change changes the object, in the version of Type. It is called again with the
	// newer object after a conflict with another writer. Amend returns its error.
	Change func(object map[string]any) error
}

// Amend applies the change and retries it after conflicts. It returns NotFound (404) if
// the object does not exist.
func (h *Handlers) Amend(ctx context.Context, a Amendment) error {
	return services.RetryLost(ctx, raced, func() error { return h.amendOnce(ctx, a) })
}

func (h *Handlers) amendOnce(ctx context.Context, a Amendment) error {
	current, err := h.Store.Get(ctx, services.GetRequest{Key: a.Key})
	if err != nil {
		return err
	}
	if err := strategy.CheckPreconditions(a.Type, a.Preconditions, current); err != nil {
		return err
	}
	object, err := a.Engine.DecodeStored(ctx, current, a.Type)
	if err != nil {
		return err
	}
	if err := a.Change(object); err != nil || a.DryRun {
		return err
	}
	content, err := a.Engine.Content(ctx, object, nil, a.Type)
	if err != nil || tree.IsVersion(current.JSON, content.JSON, current.Revision) {
		return err
	}
	stored, err := h.Store.Update(ctx, services.UpdateRequest{Key: a.Key, Revision: current.Revision, Content: content})
	if err == nil && a.Amended != nil {
		*a.Amended = stored
	}
	return asRaced(err)
}

// Ensure applies the change to the stored object with the type, namespace and name of the
// given one, or creates the given one with the change. It does nothing if the type is not
// served, or if another front door creates the object at the same time.
func (h *Handlers) Ensure(ctx context.Context, e *typesystem.Engine, object map[string]any, change func(object map[string]any) error) error {
	t, ok := e.Types.ByAPIVersion(tree.Text(object, "apiVersion"), tree.Text(object, "kind"))
	if !ok {
		return nil // disabled by --runtime-config
	}
	key := resource.Key{GroupResource: t.GroupResource(), Namespace: tree.Text(object, "metadata", "namespace"), Name: tree.Text(object, "metadata", "name")}
	err := h.Amend(ctx, Amendment{Engine: e, Type: t, Key: key, Change: change})
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
