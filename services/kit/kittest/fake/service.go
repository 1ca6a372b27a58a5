package fake

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
)

// Service offers the cluster to the services that are started after it.
func (c *Cluster) Service() run.Service {
	return run.Service{
		Name: "fake", About: "an in-memory cluster",
		Offers: []run.Dependency{contract.Store, contract.WatchHub, bus.Conn},
		Start: func(_ context.Context, n *run.Node) error {
			contract.Store.Offer(n, readOnly{c})
			contract.WatchHub.Offer(n, c)
			bus.Conn.Offer(n, c.bus)
			return nil
		},
	}
}

// readOnly is the cluster as a read-only store: only tests change it.
type readOnly struct{ services.Reader }

func (readOnly) Create(context.Context, services.CreateRequest) (services.Object, error) {
	return services.Object{}, errReadOnly()
}

func (readOnly) Update(context.Context, services.UpdateRequest) (services.Object, error) {
	return services.Object{}, errReadOnly()
}

func (readOnly) Delete(context.Context, services.DeleteRequest) (services.Object, error) {
	return services.Object{}, errReadOnly()
}

func errReadOnly() error { return services.BadRequest("the cluster of this test is read-only") }

var _ services.Store = readOnly{}
