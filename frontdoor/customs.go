package frontdoor

import (
	"context"

	"github.com/portico-platform/portico/frontdoor/internal/custom"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/changes"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/run"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/webhook"
)

// followCustom keeps what the front door knows of custom types up to date, and
// returns when all that are stored are known.
func (d *door) followCustom(ctx context.Context, n *run.Node, b behind) error {
	builtIn := d.types.Load().engine
	var mirror *changes.Mirror[custom.Definition]
	mirror = changes.NewMirror(changes.MirrorConfig[custom.Definition]{
		Source: b.changes, Store: b.store, Log: n.Log,
		GroupResource: resource.GroupResource{Group: n.Vocabulary.Group("apiextensions."), Resource: "customresourcedefinitions"},
		Decode: func(o services.Object) (custom.Definition, error) {
			object, err := tree.Decode(o.JSON)
			if err != nil {
				return custom.Definition{}, err
			}
			in := custom.Setting{Vocabulary: n.Vocabulary, Find: webhook.ClusterServices(b.store), Revision: o.Revision}
			if before, ok := mirror.Get("", o.Key.Name); ok {
				in.Before = &before
			}
			return custom.Compile(object, in)
		},
		Changed: func() { d.learn(builtIn.With(mirror.List(""))) },
	})
	n.Go("following custom types", mirror.Run)
	select {
	case <-mirror.Ready():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
