// Package authz is the service that decides what users may do, by stored roles and
// bindings (RBAC). Members of system:masters may do everything; all others what
// bindings grant to them or to one of their groups. There are no deny rules. It mirrors
// roles and bindings and never writes anything; the rules of aggregated cluster roles
// are gathered while compiling the index. It serves sections "Authorization notes" and
// "Impersonation" of the specification.
package authz

import (
	"context"

	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
)

// Service describes authz to the kit.
func Service() run.Service {
	return run.Service{
		Name:   "authz",
		About:  "authorizes requests by stored roles and bindings (RBAC)",
		Offers: []run.Dependency{contract.Authz},
		Needs:  []run.Dependency{contract.Store, contract.WatchHub, bus.Conn},
		Start:  start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	store, err := contract.Store.Use(ctx, n)
	if err != nil {
		return err
	}
	source, err := changes.Use(ctx, n)
	if err != nil {
		return err
	}
	a := newAuthorizer(sources{
		changes: source, store: store,
		group: n.Vocabulary.Group("rbac.authorization."), log: n.Log,
	})
	for _, loop := range a.loops() {
		n.Go("roles and bindings", loop)
	}
	select {
	case <-a.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	contract.Authz.Offer(n, a)
	return nil
}
