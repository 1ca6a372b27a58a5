// Package localservices registers the group versions that the front door itself serves, as
// APIServices without a service, and removes those that it no longer serves. It leaves
// APIServices without its label unchanged. It serves "Groups and paths" of the
// specification.
package localservices

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// resyncPeriod is how often the registered versions are compared with the served ones, in
// addition to whenever the served ones change.
const resyncPeriod = 10 * time.Second

// Config configures a Keeper.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Store      services.Store
	Writes     *writes.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	// Elsewhere reports whether another front door serves a group version.
	Elsewhere func(group, version string) bool
	// Changed receives a value after the types have changed.
	Changed <-chan struct{}
	Log     *slog.Logger
}

// Keeper keeps the registered versions up to date.
type Keeper struct{ Config }

// Run reconciles the registered versions until ctx ends, and then returns nil.
func (k Keeper) Run(ctx context.Context) error {
	ticks := time.NewTicker(resyncPeriod)
	defer ticks.Stop()
	for {
		if err := k.pass(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("registering the served versions failed, retrying", "error", err)
		}
		select {
		case <-k.Changed:
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// pass reconciles once. It continues after an error, so that an object that cannot be
// written does not affect the others.
func (k Keeper) pass(ctx context.Context) error {
	e := k.Engine()
	t, ok := e.Types.ByKind(k.Vocabulary.Group("apiregistration."), "v1", "APIService")
	if !ok {
		return nil // disabled by --runtime-config
	}
	desired := k.desired(e.Types)
	var errs []error
	_, err := services.ForEach(ctx, k.Store, services.ListRequest{GroupResource: t.GroupResource()}, func(o services.Object) error {
		object, ours := desired[o.Key.Name]
		delete(desired, o.Key.Name)
		switch {
		case o.Labels[k.label()] == "": // created by others, possibly under the same name
		case !ours:
			if version, group, _ := strings.Cut(o.Key.Name, "."); k.Elsewhere(group, version) {
				return nil
			}
			errs = append(errs, k.remove(ctx, o))
		default:
			errs = append(errs, k.correct(ctx, e, t, o, object))
		}
		return nil
	})
	errs = append(errs, err)
	if err == nil {
		for _, object := range desired {
			errs = append(errs, k.Writes.Create(ctx, e, t, object))
		}
	}
	return errors.Join(errs...)
}

// label returns the label of the APIServices that this package manages.
func (k Keeper) label() string {
	return k.Vocabulary.Qualified(k.Vocabulary.Namespace("aggregator"), "automanaged")
}

// correct updates the spec of a registered version if it differs from that of object.
func (k Keeper) correct(ctx context.Context, e *typesystem.Engine, t *catalogue.Type, o services.Object, object map[string]any) error {
	stored, err := tree.Decode(o.JSON)
	if err != nil || tree.Equal(stored["spec"], object["spec"]) {
		return err
	}
	err = k.Writes.Amend(ctx, amend.Amendment{Engine: e, Type: t, Key: o.Key, Change: func(stored map[string]any) error {
		stored["spec"] = tree.Copy(object["spec"])
		return nil
	}})
	if services.IsReason(err, services.ReasonNotFound) {
		return nil // the next pass creates it
	}
	return err
}

// remove deletes the APIService of a version that is no longer served, unless it has
// changed in the meantime.
func (k Keeper) remove(ctx context.Context, o services.Object) error {
	_, err := k.Store.Delete(ctx, services.DeleteRequest{Key: o.Key, Revision: o.Revision})
	if services.IsReason(err, services.ReasonNotFound) || services.IsReason(err, services.ReasonConflict) {
		return nil
	}
	return err
}

// desired returns the APIServices of all served versions, by name.
func (k Keeper) desired(types *catalogue.Catalogue) map[string]map[string]any {
	objects := map[string]map[string]any{}
	for _, g := range types.Groups() {
		for _, v := range g.Versions {
			spec := map[string]any{"version": v.Version, "groupPriorityMinimum": g.Priority, "versionPriority": v.Priority}
			if v.Types[0].Custom {
				spec["groupPriorityMinimum"] = int64(catalogue.CustomPriority)
			}
			if g.Name != "" {
				spec["group"] = g.Name
			}
			name := v.Version + "." + g.Name
			objects[name] = map[string]any{"apiVersion": k.Vocabulary.Group("apiregistration.") + "/v1", "kind": "APIService", "spec": spec,
				"metadata": map[string]any{"name": name, "labels": map[string]any{k.label(): "true"}}}
		}
	}
	return objects
}
