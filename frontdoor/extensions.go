package frontdoor

import (
	"context"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/backends"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/clienttrust"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/extensions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/webhooks"
)

// engine returns the types that are served now.
func (d *door) engine() *typesystem.Engine { return d.types.Load().engine }

// followExtensions builds the handlers of extensions, and returns once all of these are
// known. It also publishes what extensions need to authenticate clients.
func (c *config) followExtensions(ctx context.Context, n *run.Node, b backends.Services, d *door) error {
	trust := clienttrust.Config{Vocabulary: n.Vocabulary, Writes: d.writes, Engine: d.engine, Log: n.Log}
	clienttrust.Apply(n, &trust)
	n.Go("publishing how clients are authenticated", clienttrust.New(trust).Run)
	config := extensions.Config{Vocabulary: n.Vocabulary, Store: b.Store, Source: b.Changes, Writes: d.writes, Connections: d.connections,
		Engine: d.engine, Services: webhooks.Locator(n, b.Store), Hidden: slices.Concat(trust.UserHeaders, trust.GroupHeaders, trust.ExtraPrefixes), Ledger: n.Ledger, Log: n.Log}
	if err := c.extensions.Apply(n, &config); err != nil {
		return err
	}
	d.learning.Lock()
	d.extensions = extensions.New(config)
	d.learning.Unlock()
	if err := n.Metrics.Register(d.extensions.Metrics()); err != nil {
		return err
	}
	n.Go("following extensions", d.extensions.Follow)
	select {
	case <-d.extensions.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	n.Go("checking extensions", d.extensions.Check)
	n.Go("reading the documents of extensions", d.extensions.Read)
	n.Go("publishing the documents of extensions", d.publishExtensions)
	return nil
}

// publishExtensions publishes the documents of extensions and of other front doors when they have changed.
func (d *door) publishExtensions(ctx context.Context) error {
	for {
		select {
		case <-d.extensions.Changed():
		case <-d.forwarding.Changed():
		case <-ctx.Done():
			return nil
		}
		d.learning.Lock()
		d.publish(d.engine())
		d.learning.Unlock()
	}
}
