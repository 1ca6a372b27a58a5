package frontdoor

import (
	"context"

	"github.com/portico-platform/portico/frontdoor/internal/backends"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/extensions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services/kit/run"
)

// followExtensions builds the handlers of extensions, and returns once all of these are
// known.
func (c *config) followExtensions(ctx context.Context, n *run.Node, b backends.Services, d *door) error {
	config := extensions.Config{Vocabulary: n.Vocabulary, Store: b.Store, Source: b.Changes, Writes: d.writes, Connections: d.connections,
		Engine: func() *typesystem.Engine { return d.types.Load().engine }, Log: n.Log}
	if err := c.extensions.Apply(n, &config); err != nil {
		return err
	}
	d.extensions = extensions.New(config)
	n.Go("following extensions", d.extensions.Follow)
	select {
	case <-d.extensions.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	n.Go("checking extensions", d.extensions.Check)
	return nil
}
