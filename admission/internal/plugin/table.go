package plugin

import (
	"log/slog"
	"slices"
	"time"

	"github.com/portico-platform/portico/admission/internal/delegate"
	"github.com/portico-platform/portico/admission/internal/devices"
	"github.com/portico-platform/portico/admission/internal/events"
	"github.com/portico-platform/portico/admission/internal/images"
	"github.com/portico-platform/portico/admission/internal/limits"
	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/nodes"
	"github.com/portico-platform/portico/admission/internal/nodeselector"
	"github.com/portico-platform/portico/admission/internal/optional"
	"github.com/portico-platform/portico/admission/internal/ownerrefs"
	"github.com/portico-platform/portico/admission/internal/placement"
	"github.com/portico-platform/portico/admission/internal/podsecurity"
	"github.com/portico-platform/portico/admission/internal/podstandards"
	"github.com/portico-platform/portico/admission/internal/policy"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/admission/internal/serviceaccount"
	"github.com/portico-platform/portico/admission/internal/tolerations"
	"github.com/portico-platform/portico/admission/internal/usage"
	"github.com/portico-platform/portico/admission/internal/webhook"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/revocation"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Environment holds the services and cached objects that the plugins use. Each collection
// is filled with the parser of its element type.
type Environment struct {
	Vocabulary vocabulary.Vocabulary
	Store      services.Store // only ResourceQuota, NamespaceAutoProvision and AdmissionServices write
	Authz      services.Authz
	// Expressions evaluates what configurations of webhooks contain.
	Expressions *cel.Engine
	Log         *slog.Logger
	// Admission is the chain of these plugins, for what plugins themselves create.
	Admission services.Admission

	Namespaces      review.Collection[namespaces.Namespace]
	StorageClasses  review.Collection[Class]
	IngressClasses  review.Collection[Class]
	PriorityClasses review.Collection[PriorityClass]
	RuntimeClasses  review.Collection[RuntimeClass]
	Accounts        serviceaccount.Accounts
	LimitRanges     review.Collection[limits.Range]
	Quotas          review.Collection[quota.Quota]
	PodPolicies     review.Collection[podsecurity.Policy] // nil when the plugin is off
	Nodes           review.Collection[placement.Topology] // nil when the plugin that reads them is off
	// Policies and their bindings; nil before release 1.36, which has them.
	Policies         review.Collection[policy.Validating]
	PolicyBindings   review.Collection[policy.Binding]
	Mutations        review.Collection[policy.Mutating]
	MutationBindings review.Collection[policy.Binding]
	CustomTypes      review.Collection[policy.Custom]
	// Release is the emulated release.
	Release release.Release
	// Gates are the feature gates.
	Gates featuregate.Gates
	// Delegates are the admission services.
	Delegates *delegate.Registry
	// Mutating and Validating are the configurations of webhooks.
	Mutating, Validating review.Collection[webhook.Configuration]
	// Configured returns the revision through which the objects that configure plugins include
	// every change, and Settled that of namespaces and quotas.
	Configured, Settled func() int64
	// Default tolerationSeconds for nodes that are not ready or unreachable.
	NotReadyFor, UnreachableFor time.Duration
	// Config is what the configuration file says.
	Config Config
}

// Config is what plugins read from the configuration file. Its zero value configures
// nothing.
type Config struct {
	NodeSelectors nodeselector.Config
	EventLimits   []events.Limit
	Limited       []usage.Limited
	Tolerations   tolerations.Config
	ImagePolicy   images.Config
	PodStandards  podstandards.Config
	// MutatingAs and ValidatingAs are the identities with which webhooks are called.
	MutatingAs, ValidatingAs webhook.Identities
}

// Table returns all plugins in the order in which they are called: first cheap rejections,
// then defaults, then admission services and webhooks, and last ResourceQuota, which must see the final object.
func Table(e Environment) []Plugin {
	v := e.Vocabulary
	known := namespaces.Known{Mirror: e.Namespaces, Store: e.Store, Parse: namespaces.Parser(v)}
	selectors := nodeselector.Plugin{Namespaces: known, Config: e.Config.NodeSelectors}
	lifecycle := namespaceLifecycle{namespaces: known, reviews: v.Group("authorization."),
		immortal: []string{"default", v.Namespace("system"), v.Namespace("public")}}
	provision := optional.NamespaceAutoProvision{Namespaces: known, Store: e.Store, Vocabulary: v, Admission: e.Admission}
	accounts := serviceaccount.Plugin{Accounts: e.Accounts, Store: e.Store, Vocabulary: v}
	ranges := limits.Plugin{Ranges: e.LimitRanges, Vocabulary: v, Release: e.Release}
	runtimes := runtimeClass{classes: e.RuntimeClasses, store: e.Store, group: v.Group("node.")}
	matcher := match.Matcher{Labels: known.Labels, Expressions: e.Expressions, Vocabulary: v, Log: e.Log}
	webhooks := webhook.Webhooks{Mutating: e.Mutating, Validating: e.Validating, Matcher: matcher, Vocabulary: v, Log: e.Log}
	delegated := &delegate.Plugin{Registry: e.Delegates, Matcher: matcher, Authz: e.Authz, Log: e.Log}
	pods := podsecurity.Plugin{Policies: e.PodPolicies, Authz: e.Authz, Vocabulary: v}
	restricted := tolerations.Plugin{Namespaces: known, Config: e.Config.Tolerations, Vocabulary: v}
	defaults := defaultTolerations{taints: []taint{
		{v.Qualified("node", "not-ready"), int64(e.NotReadyFor.Seconds())},
		{v.Qualified("node", "unreachable"), int64(e.UnreachableFor.Seconds())},
	}}
	storage := defaultClass{
		classes: e.StorageClasses, kind: "StorageClasses", groups: []string{""}, resource: "persistentvolumeclaims",
		field: "storageClassName", annotation: v.Qualified("volume.beta", "storage-class"), newest: !e.Release.Before(release.V136),
	}
	ingress := defaultClass{
		classes: e.IngressClasses, kind: "IngressClasses", groups: []string{v.Group("networking."), "extensions"}, resource: "ingresses",
		field: "ingressClassName", annotation: v.Qualified("", "ingress.class"), newest: !e.Release.Before(release.V136),
	}
	csr := certificates{authz: e.Authz, group: v.Group("certificates."), clientSigner: v.Signers.Client}
	priorities := priority{classes: e.PriorityClasses, store: e.Store, group: v.Group("scheduling.")}
	granting := grants{authz: e.Authz, store: e.Store, group: v.Group("rbac.authorization.")}
	converts := converter{webhooks, delegated, e.mutator(known.Labels)}
	table := []Plugin{
		{Name: "grants", Always: true, Concerns: inGroup(granting.group), Validate: granting.validate},
		{Name: "revocations", Always: true, Concerns: inGroup(revocation.Group), Validate: revoking{e.Authz}.validate},
		{Name: "AlwaysAdmit", Deprecated: true},
		{Name: "NamespaceAutoProvision", Mutate: provision.Mutate},
		{Name: "NamespaceLifecycle", Default: true, Concerns: lifecycle.concerns, Idle: lifecycle.idle, Mutate: lifecycle.admit, Validate: lifecycle.admit},
		{Name: "NamespaceExists", Validate: optional.NamespaceExists{Namespaces: known}.Validate},
		{Name: "SecurityContextDeny", Validate: optional.SecurityContextDeny},
		{Name: "LimitPodHardAntiAffinityTopology", Validate: optional.LimitPodHardAntiAffinityTopology(v)},
		{Name: "LimitRanger", Default: true, Concerns: about("", "pods", "persistentvolumeclaims"), Mutate: ranges.Mutate, Validate: ranges.Validate},
		{Name: "ServiceAccount", Default: true, Concerns: about("", "pods"), Mutate: accounts.Mutate, Validate: accounts.Validate},
		{Name: "NodeRestriction", Mutate: nodes.Plugin{Store: e.Store, Authz: e.Authz, Vocabulary: v, Release: e.Release, Gates: e.Gates}.Mutate},
		{Name: "TaintNodesByCondition", Default: true, Concerns: about("", "nodes"), Mutate: taintNodes{v.Qualified("node", "not-ready")}.mutate},
		{Name: "AlwaysPullImages", Mutate: alwaysPullImages},
		{Name: "ImagePolicyWebhook", Configured: true, Effects: true, Validate: images.New(e.Config.ImagePolicy, v, e.Log).Validate},
		{Name: "PodSecurityPolicy", Mutate: pods.Mutate, Validate: pods.Validate},
		{Name: "PodNodeSelector", Mutate: selectors.Mutate, Validate: selectors.Validate},
		{Name: "Priority", Default: true, Concerns: either(about("", "pods"), about(priorities.group, "priorityclasses")), Mutate: priorities.mutate, Validate: priorities.validate},
		{Name: "DefaultTolerationSeconds", Default: true, Concerns: about("", "pods"), Mutate: defaults.mutate},
		{Name: "PodTolerationRestriction", Mutate: restricted.Mutate, Validate: restricted.Validate},
		{Name: "EventRateLimit", Configured: true, Effects: true, Validate: events.New(e.Config.EventLimits, v).Validate},
		{Name: "ExtendedResourceToleration", Mutate: optional.ExtendedResourceToleration(v)},
		{Name: "PersistentVolumeLabel", Deprecated: true, Mutate: optional.PersistentVolumeLabel(v)},
		{Name: "DefaultStorageClass", Default: true, Concerns: about("", "persistentvolumeclaims"), Mutate: storage.mutate},
		inUseProtection(v),
		{Name: "OwnerReferencesPermissionEnforcement", Validate: ownerrefs.Plugin{Authz: e.Authz}.Validate},
		{Name: "PersistentVolumeClaimResize", Default: true, Concerns: about("", "persistentvolumeclaims"), Validate: claimResize{e.StorageClasses, storage.annotation}.validate},
		{Name: "RuntimeClass", Default: true, Concerns: about("", "pods"), Mutate: runtimes.mutate, Validate: runtimes.validate},
		{Name: "CertificateApproval", Default: true, Concerns: inGroup(csr.group), Validate: csr.approval},
		{Name: "CertificateSigning", Default: true, Concerns: inGroup(csr.group), Validate: csr.signing},
		{Name: "CertificateSubjectRestriction", Default: true, Concerns: inGroup(csr.group), Validate: csr.subject},
		{Name: "DefaultIngressClass", Default: true, Concerns: either(about(ingress.groups[0], "ingresses"), about(ingress.groups[1], "ingresses")), Mutate: ingress.mutate},
		{Name: "DenyServiceExternalIPs", Validate: optional.DenyServiceExternalIPs},
		{Name: "converter", Always: true, Concerns: none, Mutate: converts.mutate, Validate: converts.validate},
		{Name: "AdmissionServices", Default: true, Final: true, Concerns: delegated.Concerns, Mutate: delegated.Mutate, Validate: delegated.Validate},
		{Name: "MutatingAdmissionWebhook", Default: true, Concerns: webhooks.MutatingConcerns, Mutate: webhooks.Mutate},
		{Name: "ValidatingAdmissionWebhook", Default: true, Final: true, Concerns: webhooks.ValidatingConcerns, Validate: webhooks.Validate},
		{Name: "AlwaysDeny", Deprecated: true, Validate: alwaysDeny},
	}
	if converts.policies != nil {
		table = e.insertLater(table, known, converts.policies)
	}
	if v.Behaviour.DenyEscalatingExec {
		table = append(table, Plugin{Name: "DenyEscalatingExec", Deprecated: true, Validate: escalatingExec{e.Store}.validate})
	}
	charges := usage.New(e.Quotas, e.Store, usage.Settings{Counter: quota.NewCounter(v), Limited: e.Config.Limited, Release: e.Release})
	return e.guarded(append(table, e.devices(known), Plugin{Name: "ResourceQuota", Default: true, Effects: true, Concerns: usage.Concerns, Idle: charges.Idle, Validate: charges.Validate, Refund: charges.Refund}))
}

// devices returns the plugin of claims of devices.
func (e Environment) devices(known namespaces.Known) Plugin {
	p := devices.Plugin{Namespaces: known, Authz: e.Authz, Vocabulary: e.Vocabulary, Status: e.Gates.On(featuregate.ClaimStatus)}
	return Plugin{Name: "devices", Always: true, Concerns: p.Concerns, Validate: p.Validate}
}

// mutator returns the plugin of mutating policies, nil before release 1.36.
func (e Environment) mutator(labels match.Labels) *policy.Mutator {
	if e.Release.Before(release.V136) {
		return nil
	}
	return policy.NewMutator(policy.MutatorConfig{Policies: e.Mutations, Bindings: e.MutationBindings, Custom: e.CustomTypes, Store: e.Store,
		Labels: labels, Expressions: e.Expressions, Vocabulary: e.Vocabulary})
}

// insertLater inserts the plugins that release 1.36 has and earlier ones do not: those of policies before
// those of webhooks.
func (e Environment) insertLater(table []Plugin, known namespaces.Known, mutator *policy.Mutator) []Plugin {
	v := e.Vocabulary
	standards := podstandards.New(e.Config.PodStandards, known, v, e.Release)
	topology := Plugin{Name: "PodTopologyLabels", Default: true, Concerns: about("", "pods")}
	if e.Gates.On(featuregate.TopologyLabels) {
		topology.Mutate = placement.Labels{Nodes: e.Nodes}.Mutate
	}
	resizes := placement.Resize{Store: e.Store, Counter: quota.NewCounter(v).Requested(), OS: v.Qualified("", "os")}
	policies := policy.New(policy.Config{Policies: e.Policies, Bindings: e.PolicyBindings, Custom: e.CustomTypes, Store: e.Store,
		Labels: mutator.Labels, Expressions: e.Expressions, Vocabulary: e.Vocabulary})
	at := func(name string) int { return slices.IndexFunc(table, func(p Plugin) bool { return p.Name == name }) }
	table = slices.Insert(table, at("PodSecurityPolicy"), Plugin{Name: "PodSecurity", Default: true, Concerns: standards.Concerns, Idle: standards.Idle, Validate: standards.Validate})
	table = slices.Insert(table, at("converter"), topology,
		Plugin{Name: "PodResizeValidator", Default: true, Concerns: about("", "pods"), Validate: resizes.Validate})
	table = slices.Insert(table, at("MutatingAdmissionWebhook"), Plugin{Name: "MutatingAdmissionPolicy", Default: true, Concerns: mutator.Concerns, Mutate: mutator.Mutate})
	attest := certificates{authz: e.Authz, group: v.Group("certificates.")}
	table = slices.Insert(table, at("CertificateSubjectRestriction"), Plugin{Name: "ClusterTrustBundleAttest", Default: true, Concerns: about(attest.group, "clustertrustbundles"), Validate: attest.attesting})
	return slices.Insert(table, at("ValidatingAdmissionWebhook"), Plugin{Name: "ValidatingAdmissionPolicy", Default: true, Final: true, Concerns: policies.Concerns, Validate: policies.Validate})
}

// StorageClassParser returns a parser of stored StorageClasses.
func StorageClassParser(v vocabulary.Vocabulary) func(services.Object) (Class, error) {
	return parseClass(v.Qualified("storageclass", "is-default-class"), v.Qualified("storageclass.beta", "is-default-class"))
}

// IngressClassParser returns a parser of stored IngressClasses.
func IngressClassParser(v vocabulary.Vocabulary) func(services.Object) (Class, error) {
	return parseClass(v.Qualified("ingressclass", "is-default-class"))
}
