// Package tokencleaner is the worker for bootstrap tokens: it deletes expired ones,
// publishes cluster-info, and signs it with the tokens that are for signing. It is a
// client of the public API and nothing else. A token whose Secret has no expiration, or an
// invalid one, is not deleted. It serves "Bootstrap token" under "States and transitions",
// and "Cluster-info ConfigMap", of the specification.
package tokencleaner

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/worker"
)

// The names of the controllers in --controllers; both are off by default.
const cleanerName, signerName = "tokencleaner", "bootstrapsigner"

// Service describes token-cleaner to the kit.
func Service() run.Service {
	return run.Service{
		Name:  "token-cleaner",
		About: "publishes and signs cluster-info, deletes expired bootstrap tokens (--controllers=*,tokencleaner,bootstrapsigner)",
		Needs: []run.Dependency{worker.API},
		Start: start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	config, err := worker.Config(ctx, n)
	if err != nil {
		return err
	}
	now := worker.NewClock(config, n.Log)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	core := func(plural, role string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: plural}).Namespace(n.Vocabulary.Namespace(role))
	}
	worker.Go(n, "publishing cluster-info", (&publisher{configMaps: core("configmaps", "public"), config: config, log: n.Log}).run)
	cleans, signs := worker.Enabled(n, cleanerName, false), worker.Enabled(n, signerName, false)
	if !cleans && !signs {
		n.Log.Info("only publishes cluster-info: --controllers enables neither of the others", "controllers", []string{cleanerName, signerName})
		return nil
	}
	secrets, kind := core("secrets", "system"), "type="+n.Vocabulary.Qualified("bootstrap", "token")
	if cleans {
		informer := worker.NewInformer(secrets, kind)
		c := &cleaner{secrets: secrets, clock: now, log: n.Log}
		n.Health.Add(worker.Ready(n.Service, informer))
		worker.Go(n, "cleaning", worker.Controller{
			Name: cleanerName, Informer: informer, Reconcile: c.reconcile, Clock: now, Log: n.Log}.Run)
	}
	if signs {
		configMaps := core("configmaps", "public")
		s := &signer{
			configMaps: configMaps, info: worker.NewInformer(configMaps, "metadata.name="+clusterInfo), tokens: worker.NewInformer(secrets, kind),
			fullToken: n.Vocabulary.Behaviour.ClusterInfoFullToken, queue: worker.NewQueue[string](signerName, n.Log), clock: now, log: n.Log,
		}
		n.Health.Add(worker.Ready(signerName, s.tokens))
		worker.Go(n, "signing", s.run)
	}
	return nil
}
