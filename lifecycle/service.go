// Package lifecycle runs the controllers that complete deletions and maintain derived
// objects: they empty deleted namespaces and custom resource types, collect objects
// whose owners are gone, release unused volumes, create the default objects of
// namespaces, issue tokens for service accounts and delete unused ones, count quota usage and show the rules of aggregated roles. It is a client
// of the public API and nothing else. This package starts the controllers and holds what
// they share; each is in a folder below. It serves "Two-phase deletion of a resource",
// "Terminology" and "Service account secret" of the specification.
package lifecycle

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/lifecycle/internal/accounttokens"
	"github.com/portico-platform/portico/lifecycle/internal/customresources"
	"github.com/portico-platform/portico/lifecycle/internal/garbagecollector"
	"github.com/portico-platform/portico/lifecycle/internal/inuse"
	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/lifecycle/internal/legacytokens"
	"github.com/portico-platform/portico/lifecycle/internal/namespace"
	"github.com/portico-platform/portico/lifecycle/internal/namespacedefaults"
	"github.com/portico-platform/portico/lifecycle/internal/resourcequota"
	"github.com/portico-platform/portico/lifecycle/internal/roleaggregation"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tokenkey"
)

// keyFiles is the flag for the keys of service account tokens. The services that verify
// tokens have it too.
const keyFiles = "service-account-key-file"

// unusedTokens is the flag for how long unused tokens in Secrets are kept.
const unusedTokens = "legacy-service-account-token-clean-up-period"

// Service describes lifecycle to the kit.
func Service() run.Service {
	return run.Service{
		Name:  "lifecycle",
		About: "empties deleted namespaces, collects garbage, adds default objects to namespaces, signs service account tokens, deletes unused ones, counts quota usage, fills the rules of aggregated roles",
		Needs: []run.Dependency{worker.API},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringArray(keyFiles, nil, "PEM file of keys (public or private) of service account tokens; may be given more than once; default: the server's TLS key")
			fs.Duration(unusedTokens, legacytokens.Unused, "since release 1.29: after how long an unused service account token, in a Secret that the account lists, becomes invalid, and after how long an invalid one is deleted")
		},
		Start: start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	config, err := worker.Config(ctx, n)
	if err != nil {
		return err
	}
	// The number of workers bounds concurrent requests, and the front door shares its
	// capacity fairly: a client-side rate limit would only slow down large deletions.
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // it reads all types, deprecated ones too
	l := &lifecycle{Node: n, config: config, clock: worker.NewClock(config, n.Log)}
	if err := l.connect(); err != nil {
		return err
	}
	for _, part := range []func() error{
		l.startNamespace, l.startCustomResources, l.startGarbageCollector, l.startNamespaceDefaults, l.startTokens, l.startTokenCleaner, l.startQuotas, l.startVolumes, l.startRoles,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	if !l.on {
		n.Log.Info("off: --controllers disables all controllers")
		return nil
	}
	n.Health.Add(worker.Ready(n.Service, l.namespaces))
	worker.Go(n, "following namespaces", func(ctx context.Context) error {
		l.namespaces.RunWithContext(ctx)
		return nil
	})
	return nil
}

// lifecycle holds what the controllers share.
type lifecycle struct {
	*run.Node
	config           *rest.Config
	clock            *worker.Clock // for what cannot be undone
	roots            []byte        // CA certificates of the API, as PEM; may be empty
	client, metadata dynamic.Interface
	inventory        *inventory.Source
	namespaces       cache.SharedIndexInformer
	on               bool // at least one controller runs
}

func (l *lifecycle) connect() error {
	var errs [3]error
	l.client, errs[0] = dynamic.NewForConfig(l.config)
	l.metadata, errs[1] = inventory.NewMetadataClient(l.config, l.Vocabulary)
	l.inventory, errs[2] = inventory.NewSource(l.config, l.Vocabulary)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	trust := rest.CopyConfig(l.config)
	if err := rest.LoadTLSFiles(trust); err != nil {
		return run.Usagef("--kubeconfig: %v", err)
	}
	l.roots = trust.CAData
	l.namespaces = worker.NewInformer(l.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}), "")
	return nil
}

func (l *lifecycle) startNamespace() error {
	if !worker.Enabled(l.Node, namespace.Name, true) {
		return nil
	}
	c, err := namespace.New(namespace.Config{
		Client: l.client, Metadata: l.metadata, Inventory: l.inventory, Namespaces: l.namespaces,
		Finalizer: l.Vocabulary.NamespaceFinalizer, Clock: clock.RealClock{}, Log: l.Log,
	})
	if err != nil {
		return err
	}
	l.on = true
	worker.Go(l.Node, "emptying namespaces", c.Run)
	return nil
}

func (l *lifecycle) startCustomResources() error {
	if !worker.Enabled(l.Node, customresources.Name, true) {
		return nil
	}
	c, err := customresources.New(customresources.Config{
		Client: l.client, Metadata: l.metadata, Vocabulary: l.Vocabulary, Clock: clock.RealClock{}, Log: l.Log,
	})
	if err != nil {
		return err
	}
	l.on = true
	worker.Go(l.Node, "deleting the objects of deleted definitions", c.Run)
	return nil
}

func (l *lifecycle) startGarbageCollector() error {
	if !worker.Enabled(l.Node, garbagecollector.Name, true) {
		return nil
	}
	c := garbagecollector.New(garbagecollector.Config{
		Metadata: l.metadata, Inventory: l.inventory, Vocabulary: l.Vocabulary, Clock: clock.RealClock{}, Log: l.Log,
	})
	l.on = true
	worker.Go(l.Node, "collecting garbage", c.Run)
	return nil
}

func (l *lifecycle) startNamespaceDefaults() error {
	things := []namespacedefaults.Thing{namespacedefaults.ServiceAccount()}
	if len(l.roots) > 0 {
		things = append(things, namespacedefaults.RootCertificate(l.Vocabulary, l.roots))
	} else {
		l.Log.Info("namespaces get no root certificate: --kubeconfig uses the system's CA certificates")
	}
	for _, thing := range things {
		if !worker.Enabled(l.Node, thing.Controller, true) {
			continue
		}
		c, err := namespacedefaults.New(thing, l.client, l.namespaces, l.Log)
		if err != nil {
			return err
		}
		l.on = true
		worker.Go(l.Node, "adding namespace defaults: "+thing.Controller, c.Run)
	}
	return nil
}

func (l *lifecycle) startTokens() error {
	if !worker.Enabled(l.Node, accounttokens.Name, true) {
		return nil
	}
	files, _ := l.Flags.GetStringArray(keyFiles)
	key, err := tokenkey.Read(files...)
	switch {
	case errors.Is(err, tokenkey.ErrNone):
		l.Log.Info("service accounts get no token secrets: no private key to sign with", "flag", keyFiles)
		return nil
	case err != nil:
		return run.Usagef("--%s: %v", keyFiles, err)
	}
	c, err := accounttokens.New(accounttokens.Config{Client: l.client, Vocabulary: l.Vocabulary, Release: l.Release, Key: key, RootCertificate: l.roots, Log: l.Log})
	if err != nil {
		return err
	}
	l.on = true
	worker.Go(l.Node, "creating service account tokens", c.Run)
	return nil
}

func (l *lifecycle) startTokenCleaner() error {
	unused, _ := l.Flags.GetDuration(unusedTokens)
	switch {
	case unused <= 0:
		return run.Usagef("--%s: must be greater than 0", unusedTokens)
	case !worker.Enabled(l.Node, legacytokens.Name, true) || l.Release.Minor() < release.LegacyTokensCleaned:
		return nil
	}
	l.on = true
	worker.Go(l.Node, "deleting unused service account tokens", legacytokens.New(legacytokens.Config{
		Client: l.client, Metadata: l.metadata, Vocabulary: l.Vocabulary, Unused: unused, Clock: l.clock, Log: l.Log}).Run)
	return nil
}

func (l *lifecycle) startQuotas() error {
	if !worker.Enabled(l.Node, resourcequota.Name, true) {
		return nil
	}
	c, err := resourcequota.New(resourcequota.Config{
		Client: l.client, Metadata: l.metadata, Inventory: l.inventory, Counter: quota.NewCounter(l.Vocabulary), Clock: l.clock, Log: l.Log,
	})
	if err != nil {
		return err
	}
	l.on = true
	worker.Go(l.Node, "counting quota usage", c.Run)
	return nil
}

func (l *lifecycle) startVolumes() error {
	protected := []inuse.Kind{inuse.Claims(l.Vocabulary), inuse.Volumes(l.Vocabulary)}
	if !l.Release.Before(release.V136) {
		protected = append(protected, inuse.AttributesClasses(l.Vocabulary))
	}
	for _, kind := range protected {
		if !worker.Enabled(l.Node, kind.Controller, true) {
			continue
		}
		c, err := inuse.New(kind, l.client, l.Log)
		if err != nil {
			return err
		}
		l.on = true
		worker.Go(l.Node, "removing finalizers of unused storage: "+kind.Controller, c.Run)
	}
	return nil
}

func (l *lifecycle) startRoles() error {
	if !worker.Enabled(l.Node, roleaggregation.Name, true) {
		return nil
	}
	c, err := roleaggregation.New(l.client, l.Vocabulary, l.Log)
	if err != nil {
		return err
	}
	l.on = true
	worker.Go(l.Node, "writing the rules of aggregated roles", c.Run)
	return nil
}
