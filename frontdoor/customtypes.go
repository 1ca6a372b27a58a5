package frontdoor

import (
	"context"
	"maps"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/backends"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap/relocation"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/webhooks"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// followCustom keeps the front door's custom types up to date. It returns the stored
// definitions once all of them have been loaded.
func (d *door) followCustom(ctx context.Context, n *run.Node, b backends.Services) ([]crd.Definition, error) {
	builtIn := d.types.Load().engine
	clients, err := webhooks.Clients(n, b.Store)
	if err != nil {
		return nil, err
	}
	var mirror *changes.Mirror[crd.Definition]
	mirror = changes.NewMirror(changes.MirrorConfig[crd.Definition]{
		Source: b.Changes, Store: b.Direct, Log: n.Log,
		GroupResource: d.definitions(), Keep: true, // the types of one that can no longer be read are served as before
		Decode: func(o services.Object) (crd.Definition, error) {
			object, err := tree.Decode(o.JSON)
			if err != nil {
				return crd.Definition{}, err
			}
			in := crd.Setting{Vocabulary: n.Vocabulary, Types: builtIn.Types, Webhooks: clients, Revision: o.Revision}
			if before, ok := mirror.Get("", o.Key.Name); ok {
				in.Before = &before
			}
			return crd.Compile(object, in)
		},
		Changed: func() {
			now := mirror.Now()
			d.learn(builtIn.With(now.List("")).WithoutReading(backends.Unknown(now.Unread(""))), now.Revision())
		},
	})
	n.Go("following custom types", mirror.Run)
	select {
	case <-mirror.Ready():
		return mirror.List(""), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// definitions returns the type of CustomResourceDefinitions.
func (d *door) definitions() resource.GroupResource {
	return resource.GroupResource{Group: d.vocabulary.Group("apiextensions."), Resource: "customresourcedefinitions"}
}

// migrateCustomTypes moves custom objects that earlier releases stored under other keys.
// It runs before the front door serves requests.
func (d *door) migrateCustomTypes(ctx context.Context, stored []crd.Definition) error {
	e := d.types.Load().engine
	var types []*catalogue.Type
	for _, definition := range stored {
		types = append(types, definition.Stored)
		if !definition.Shadows {
			continue
		}
		d.log.Warn("definition not served: it uses names of built-in types", "definition", definition.Name)
		if err := d.answered(ctx, func() error { return d.rejectNames(ctx, definition.Name) }); err != nil {
			return err
		}
	}
	mover := relocation.Mover{Store: d.store, Types: e.Types, Content: e.Kept, Log: d.log}
	return d.answered(ctx, func() (err error) {
		d.reads.CustomSince, err = mover.Run(ctx, types)
		return err
	})
}

// rejectNames sets the status of a definition to names not accepted.
func (d *door) rejectNames(ctx context.Context, name string) error {
	e := d.types.Load().engine
	t := e.Types.Stored(d.definitions())
	write := e.Strategy(t)
	write.Now = time.Now()
	err := d.writes.Amend(ctx, amend.Amendment{Engine: e, Type: t, Key: resource.Key{GroupResource: d.definitions(), Name: name},
		Change: func(object map[string]any) error {
			write.Settle(object, maps.Clone(object))
			return nil
		}})
	if services.IsReason(err, services.ReasonNotFound) { // deleted in the meantime
		return nil
	}
	return err
}
