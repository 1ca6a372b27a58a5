package plugin

import (
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Collection is a resource type as plugins read it: from memory.
type Collection[T any] interface {
	Get(namespace, name string) (T, bool)
	List(namespace string) []T
}

// Environment is what the plugins work with.
type Environment struct {
	Vocabulary vocabulary.Vocabulary
	Store      services.Reader
	Authz      services.Authz
	Namespaces Collection[Namespace]
	// StorageClasses and IngressClasses are made with the parsers of this package.
	StorageClasses Collection[Class]
	IngressClasses Collection[Class]
	// PriorityClasses are those of pods.
	PriorityClasses Collection[PriorityClass]
	// How long pods stay on nodes that are not ready, or that cannot be reached.
	NotReadyFor, UnreachableFor time.Duration
}

// Table returns all plugins in the order in which they see a request: first what
// refuses cheaply, then what fills in, then what asks others, and last what counts
// and so must see the final object.
func Table(e Environment) []Plugin {
	v := e.Vocabulary
	lifecycle := namespaceLifecycle{
		namespaces: e.Namespaces, store: e.Store, reviews: v.Group("authorization."),
		immortal: []string{"default", v.Namespace("system"), v.Namespace("public")},
	}
	tolerations := defaultTolerations{taints: []taint{
		{v.Qualified("node", "not-ready"), int64(e.NotReadyFor.Seconds())},
		{v.Qualified("node", "unreachable"), int64(e.UnreachableFor.Seconds())},
	}}
	storage := defaultClass{
		classes: e.StorageClasses, groups: []string{""}, resource: "persistentvolumeclaims",
		field: "storageClassName", annotation: v.Qualified("volume.beta", "storage-class"),
	}
	ingress := defaultClass{
		classes: e.IngressClasses, groups: []string{v.Group("networking."), "extensions"}, resource: "ingresses",
		field: "ingressClassName", annotation: v.Qualified("", "ingress.class"),
	}
	csr := certificates{authz: e.Authz, group: v.Group("certificates."), clientSigner: v.Signers.Client}
	priorities := priority{classes: e.PriorityClasses, store: e.Store, group: v.Group("scheduling.")}
	granting := grants{authz: e.Authz, store: e.Store, group: v.Group("rbac.authorization.")}
	table := []Plugin{
		{Name: "grants", Always: true, Validate: granting.validate},
		{Name: "AlwaysAdmit"},
		{Name: "NamespaceLifecycle", Default: true, Validate: lifecycle.validate},
		{Name: "LimitRanger", Default: true, Waiting: true},
		{Name: "ServiceAccount", Default: true, Waiting: true},
		{Name: "TaintNodesByCondition", Default: true, Mutate: taintNodes{v.Qualified("node", "not-ready")}.mutate},
		{Name: "AlwaysPullImages", Mutate: alwaysPullImages},
		{Name: "PodNodeSelector", Waiting: true},
		{Name: "Priority", Default: true, Mutate: priorities.mutate},
		{Name: "DefaultTolerationSeconds", Default: true, Mutate: tolerations.mutate},
		{Name: "DefaultStorageClass", Default: true, Mutate: storage.mutate},
		{Name: "StorageObjectInUseProtection", Default: true, Waiting: true},
		{Name: "PersistentVolumeClaimResize", Default: true, Waiting: true},
		{Name: "RuntimeClass", Default: true, Waiting: true},
		{Name: "CertificateApproval", Default: true, Validate: csr.approval},
		{Name: "CertificateSigning", Default: true, Validate: csr.signing},
		{Name: "CertificateSubjectRestriction", Default: true, Validate: csr.subject},
		{Name: "DefaultIngressClass", Default: true, Mutate: ingress.mutate},
		{Name: "MutatingAdmissionWebhook", Default: true, Waiting: true},
		{Name: "ValidatingAdmissionWebhook", Default: true, Waiting: true},
		{Name: "ResourceQuota", Default: true, Waiting: true},
		{Name: "AlwaysDeny", Validate: alwaysDeny},
	}
	if v.Behaviour.DenyEscalatingExec {
		table = append(table, Plugin{Name: "DenyEscalatingExec", Validate: escalatingExec{e.Store}.validate})
	}
	return table
}

// StorageClassParser reads stored storage classes.
func StorageClassParser(v vocabulary.Vocabulary) func(services.Object) (Class, error) {
	return parseClass(v.Qualified("storageclass", "is-default-class"), v.Qualified("storageclass.beta", "is-default-class"))
}

// IngressClassParser reads stored ingress classes.
func IngressClassParser(v vocabulary.Vocabulary) func(services.Object) (Class, error) {
	return parseClass(v.Qualified("ingressclass", "is-default-class"))
}
