package admission

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/portico-platform/portico/admission/internal/delegate"
	"github.com/portico-platform/portico/admission/internal/limits"
	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/placement"
	"github.com/portico-platform/portico/admission/internal/plugin"
	"github.com/portico-platform/portico/admission/internal/podsecurity"
	"github.com/portico-platform/portico/admission/internal/policy"
	"github.com/portico-platform/portico/admission/internal/serviceaccount"
	"github.com/portico-platform/portico/admission/internal/usage"
	"github.com/portico-platform/portico/admission/internal/webhook"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/webhooks"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	remote "github.com/portico-platform/portico/services/webhook"
)

// environment connects to the services that the plugins call and waits until their
// mirrors have synced. Objects that no plugin reads that is on are not mirrored.
func environment(ctx context.Context, n *run.Node, c plugin.Config, on []plugin.Plugin) (plugin.Environment, error) {
	e := plugin.Environment{Vocabulary: n.Vocabulary, Release: n.Release, Gates: n.Gates, Log: n.Log, Config: c}
	store, err := contract.Store.Use(ctx, n)
	if err != nil {
		return e, err
	}
	if e.Authz, err = contract.Authz.Use(ctx, n); err != nil {
		return e, err
	}
	e.Expressions = cel.New(cel.Config{Release: n.Release, Authz: e.Authz})
	source, err := changes.Use(ctx, n)
	if err != nil {
		return e, err
	}
	e.Store = store
	notReady, _ := n.Flags.GetInt64("default-not-ready-toleration-seconds")
	unreachable, _ := n.Flags.GetInt64("default-unreachable-toleration-seconds")
	e.NotReadyFor, e.UnreachableFor = time.Duration(notReady)*time.Second, time.Duration(unreachable)*time.Second
	m := mirrors{node: n, store: store, source: source}
	v := n.Vocabulary
	clients, err := webhooks.Clients(n, store)
	if err != nil {
		return e, err
	}
	own, err := clientCertificate(n)
	if err != nil {
		return e, err
	}
	inhabited := mirror(&m, "", "namespaces", namespaces.Parser(v))
	e.Namespaces = inhabited
	e.StorageClasses = mirror(&m, "storage.", "storageclasses", plugin.StorageClassParser(v))
	e.IngressClasses = mirror(&m, "networking.", "ingressclasses", plugin.IngressClassParser(v))
	e.PriorityClasses = mirror(&m, "scheduling.", "priorityclasses", plugin.ParsePriorityClass)
	e.RuntimeClasses = mirror(&m, "node.", "runtimeclasses", plugin.ParseRuntimeClass)
	e.Accounts = mirror(&m, "", "serviceaccounts", serviceaccount.Parse)
	e.LimitRanges = restricting(&m, "", "limitranges", limits.Parse)
	quotas := restricting(&m, "", "resourcequotas", usage.Parse)
	e.Quotas = quotas
	isOn := func(name string) bool { // neither a flag nor a feature gate has turned it off
		return slices.ContainsFunc(on, func(p plugin.Plugin) bool { return p.Name == name && (p.Mutate != nil || p.Validate != nil) })
	}
	if isOn("PodSecurityPolicy") {
		e.PodPolicies = mirror(&m, "policy", "podsecuritypolicies", podsecurity.Parse)
	}
	mutating := restricting(&m, "admissionregistration.", "mutatingwebhookconfigurations", webhook.Parser(v, n.Release, clients, own.known(c.MutatingAs)))
	validating := restricting(&m, "admissionregistration.", "validatingwebhookconfigurations", webhook.Parser(v, n.Release, clients, own.known(c.ValidatingAs)))
	if e.Delegates, err = delegates(&m, e, clients, own); err != nil {
		return e, err
	}
	delegated := mirrorOf(&m, changes.MirrorConfig[*delegate.Declared]{GroupResource: m.typeOf(admissionservice.Group, admissionservice.Resource), Decode: e.Delegates.Parse, Changed: e.Delegates.Changed, Keep: true})
	e.Mutating, e.Validating = mutating, validating
	configuring := []interface{ Revision() int64 }{mutating, validating, delegated}
	if !n.Release.Before(release.V136) {
		policies := restricting(&m, "admissionregistration.", "validatingadmissionpolicies", policy.ParseValidating)
		e.Policies, configuring = policies, append(configuring, policies)
		e.PolicyBindings = restricting(&m, "admissionregistration.", "validatingadmissionpolicybindings", policy.ParseBinding)
		mutations := restricting(&m, "admissionregistration.", "mutatingadmissionpolicies", policy.ParseMutating)
		e.Mutations, configuring = mutations, append(configuring, mutations)
		e.MutationBindings = restricting(&m, "admissionregistration.", "mutatingadmissionpolicybindings", policy.ParseBinding)
		e.CustomTypes = mirror(&m, "apiextensions.", "customresourcedefinitions", policy.ParseCustom)
	}
	if isOn("PodTopologyLabels") {
		e.Nodes = mirror(&m, "", "nodes", placement.Parser(v))
	}
	e.Configured = func() int64 {
		least := int64(math.MaxInt64)
		for _, c := range configuring {
			least = min(least, c.Revision())
		}
		return least
	}
	e.Settled = func() int64 { return min(inhabited.Revision(), quotas.Revision()) }
	if err := m.wait(ctx); err != nil {
		return e, err
	}
	e.Delegates.Follow(delegated)
	n.Go("admission services", e.Delegates.Run)
	n.Go("status of admission services", e.Delegates.Report)
	return e, nil
}

// delegates returns the registry of admission services, with those of the file.
func delegates(m *mirrors, e plugin.Environment, clients *remote.Clients, own certificate) (*delegate.Registry, error) {
	file, _ := m.node.Flags.GetString(servicesFile)
	registry, err := delegate.NewRegistry(delegate.Config{File: file, Store: e.Store, Clients: clients, Services: webhooks.Locator(m.node, m.store), Certificate: own.orProcess(m.node),
		Expressions: e.Expressions, Vocabulary: e.Vocabulary, Ledger: m.node.Ledger, Log: e.Log})
	if err != nil {
		return nil, run.Usagef("--%s: %v", servicesFile, err)
	}
	return registry, m.node.Metrics.Register(registry.Metrics())
}

// mirrors starts mirrors and waits until all of them have synced.
type mirrors struct {
	node   *run.Node
	store  services.Reader
	source changes.Source
	ready  []<-chan struct{}
}

// mirror starts a mirror of a resource type, whose group is in short form, as in
// "storage.".
func mirror[T any](m *mirrors, group, plural string, decode func(services.Object) (T, error)) *changes.Mirror[T] {
	return mirrorOf(m, changes.MirrorConfig[T]{GroupResource: m.typeOf(group, plural), Decode: decode})
}

// restricting is mirror for objects that only restrict: the last state of one that can no longer be read stays in force.
func restricting[T any](m *mirrors, group, plural string, decode func(services.Object) (T, error)) *changes.Mirror[T] {
	return mirrorOf(m, changes.MirrorConfig[T]{GroupResource: m.typeOf(group, plural), Decode: decode, Keep: true})
}

func (m *mirrors) typeOf(group, plural string) resource.GroupResource {
	return resource.GroupResource{Group: m.node.Vocabulary.Group(group), Resource: plural}
}

// mirrorOf starts a mirror of a configuration that has no source, store and log.
func mirrorOf[T any](m *mirrors, c changes.MirrorConfig[T]) *changes.Mirror[T] {
	c.Source, c.Store, c.Log = m.source, m.store, m.node.Log
	made := changes.NewMirror(c)
	m.node.Go("mirror of "+c.GroupResource.String(), made.Run)
	m.ready = append(m.ready, made.Ready())
	return made
}

func (m *mirrors) wait(ctx context.Context) error {
	for _, ready := range m.ready {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
