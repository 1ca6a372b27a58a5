// Package tokencleaner is the worker that deletes bootstrap tokens when they
// expire. It is a client of the public API and nothing else. It decides by the
// expiration in a token's secret alone: a secret that has none, or one that cannot
// be read as a time, stays. It serves "Bootstrap token" under "States and
// transitions" of the specification.
package tokencleaner

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/services/run"
	"github.com/portico-platform/portico/services/worker"
)

// controller is the worker's name in --controllers; it is off by default.
const controller = "tokencleaner"

// Service describes token-cleaner to the kit.
func Service() run.Service {
	return run.Service{
		Name:  "token-cleaner",
		About: "deletes bootstrap tokens that have expired (--controllers=*,tokencleaner)",
		Needs: []run.Dependency{worker.API},
		Start: start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	client, err := worker.Client(ctx, n)
	if err != nil {
		return err
	}
	if !worker.Enabled(n, controller, false) {
		n.Log.Info("off: --controllers does not name it", "controller", controller)
		return nil
	}
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(n.Vocabulary.Namespace("system"))
	informer := worker.NewInformer(secrets, "type="+n.Vocabulary.Qualified("bootstrap", "token"))
	c := &cleaner{secrets: secrets, clock: clock.RealClock{}, log: n.Log}
	n.Health.Add(worker.Ready(n.Service, informer))
	n.Go("cleaning", worker.Controller{
		Name: controller, Informer: informer, Reconcile: c.reconcile, Clock: clock.RealClock{}, Log: n.Log}.Run)
	return nil
}
