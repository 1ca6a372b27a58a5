// Package amend changes stored objects as a consequence of requests to other objects or subresources,
// such as the pod of an eviction. It reads the newest state and attempts a lost write again.
package amend

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/races"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
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
	// Preconditions are those of the change; nil for none. Apply returns Conflict (409) for an
	// object that does not have them.
	Preconditions *metav1.Preconditions
	// Amended receives the stored object, unless it is nil or nothing is stored.
	Amended *services.Object
	// Change changes the object, in the version of Type. It is called again with the
	// newer object after a conflict with another writer. Apply returns its error.
	Change func(object map[string]any) error
}

// Apply applies the change to the object in a store, and retries it after conflicts. It returns
// NotFound (404) if the object does not exist.
func (a Amendment) Apply(ctx context.Context, store services.Store) error {
	return services.RetryLost(ctx, races.Lost, func() error { return a.once(ctx, store) })
}

// ApplyStatus applies a status to an object, in place, as a field manager that owns it.
func (a Amendment) ApplyStatus(ctx context.Context, object map[string]any, manager string, status map[string]any) error {
	body, err := tree.Encode(map[string]any{"apiVersion": a.Type.APIVersion(), "kind": a.Type.Kind, "metadata": map[string]any{"name": a.Key.Name}, "status": status})
	if err != nil {
		return err
	}
	applied, _, err := a.Engine.Merge.Patch(ctx, fieldmanager.PatchRequest{Type: a.Type, MediaType: fieldmanager.MediaTypeApply, Body: body,
		Current: object, Manager: manager, Force: true, Subresource: "status"})
	if err != nil {
		return err
	}
	clear(object)
	maps.Copy(object, applied)
	return nil
}

func (a Amendment) once(ctx context.Context, store services.Store) error {
	current, err := store.Get(ctx, services.GetRequest{Key: a.Key})
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
	stored, err := store.Update(ctx, services.UpdateRequest{Key: a.Key, Revision: current.Revision, Content: content})
	if err == nil && a.Amended != nil {
		*a.Amended = stored
	}
	return races.Mark(err)
}
