package frontdoor

import (
	"context"

	"github.com/portico-platform/portico/frontdoor/internal/backends"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/frontdoor/internal/bootstrap/autoupdate"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/tree"
)

// restoreDefaults restores the default roles and bindings while the service runs. It
// skips types that --runtime-config disables.
func (d *door) restoreDefaults(n *run.Node, b backends.Services) error {
	objects, err := bootstrap.Objects(n.Vocabulary, n.Release, d.gates.On)
	if err != nil {
		return err
	}
	w := roleWriter{door: d, types: map[string]*catalogue.Type{}}
	var defaults []autoupdate.Default
	for _, object := range objects {
		kind := tree.Text(object, "kind")
		t, ok := d.types.Load().engine.Types.ByAPIVersion(tree.Text(object, "apiVersion"), kind)
		if !ok || t.Group != n.Vocabulary.Group("rbac.authorization.") {
			continue
		}
		w.types[kind] = t
		defaults = append(defaults, autoupdate.Default{Key: keyOf(t.GroupResource(), object), Object: object})
	}
	keeper := autoupdate.New(autoupdate.Config{
		Defaults: defaults, OptOut: n.Vocabulary.Qualified("rbac.authorization", "autoupdate"),
		Source: b.Changes, Store: b.Direct, Writer: w, Log: n.Log,
	})
	n.Go("restoring default roles", keeper.Run)
	return nil
}

// roleWriter writes roles and bindings as the front door itself, without authorization.
type roleWriter struct {
	*door
	types map[string]*catalogue.Type // by kind
}

// Create implements autoupdate.Writer.
func (w roleWriter) Create(ctx context.Context, d autoupdate.Default) error {
	return w.writes.Create(ctx, w.door.types.Load().engine, w.typeOf(d), d.Object)
}

// Change implements autoupdate.Writer.
func (w roleWriter) Change(ctx context.Context, d autoupdate.Default, change func(map[string]any)) error {
	return w.writes.Amend(ctx, amend.Amendment{Engine: w.door.types.Load().engine, Type: w.typeOf(d), Key: d.Key,
		Change: func(object map[string]any) error {
			change(object)
			return nil
		}})
}

func (w roleWriter) typeOf(d autoupdate.Default) *catalogue.Type {
	kind, _ := d.Object["kind"].(string)
	return w.types[kind]
}
