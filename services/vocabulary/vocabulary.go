// Package vocabulary is the table of names that differ between the specification and
// Kubernetes. It is chosen at the first start and fixed for the life of the data. Every
// service takes such names from it; messages are never rewritten between vocabularies. It
// serves the naming convention at the head of the specification.
package vocabulary

import (
	"fmt"
	"strings"
)

// Vocabulary is one set of names. The zero value is not usable: use Platform, K8s or Parse.
type Vocabulary struct {
	// Name is the value of --vocabulary.
	Name string
	// Release is the default of --emulated-version, for example 1.21.
	Release string
	// Protobuf is the media type of the Protobuf envelope.
	Protobuf string
	// Extension is the prefix of schema extensions, as in x-platform-list-type.
	Extension string
	// NamespaceFinalizer is the entry of spec.finalizers that keeps a namespace until its
	// contents are deleted.
	NamespaceFinalizer string
	// ApprovalCondition is the type of the condition that reports whether a custom type in
	// a protected group is approved.
	ApprovalCondition string
	// InitialEventsEnd is the annotation of the bookmark after the initial events of a watch.
	InitialEventsEnd string
	// TokenIssuer is the default issuer of bound service account tokens; LegacyTokenIssuer
	// is the issuer of those in Secrets.
	TokenIssuer, LegacyTokenIssuer string
	// APIService is the name of the API's Service in the default namespace.
	APIService string
	// Domain qualifies plain names, as in platform.io/legacy-unknown.
	Domain string
	// NodeAgent is the agent on each node, as in nodeagent.platform.io/name.
	NodeAgent string
	// Definitions is the prefix of schema names in published documents.
	Definitions string
	// groupSuffix is the suffix of the API groups that differ between vocabularies.
	groupSuffix string
	// namespacePrefix is the prefix of the system namespaces, and of the objects that the
	// service creates in every namespace.
	namespacePrefix string
	// domainSuffix is the suffix of qualified domains that are not API groups, as in
	// bootstrap.platform.io/token.
	domainSuffix string

	// Signers are the names of the built-in certificate signers.
	Signers Signers
	// Behaviour holds other differences between the specification and Kubernetes.
	Behaviour Behaviour
}

// Signers are the built-in signers' names (section "Built-in signers").
type Signers struct {
	Client, NodeClient, NodeServing, LegacyUnknown string
}

// Behaviour holds the differences of behaviour between the specification and Kubernetes.
type Behaviour struct {
	// CreatedStatus is the HTTP status of a successful create.
	CreatedStatus int
	// ContinueAlways writes metadata.continue in every list, empty at the end.
	ContinueAlways bool
	// EmptyManagedFieldsReset lets an empty metadata.managedFields list reset ownership.
	EmptyManagedFieldsReset bool
	// ResetOwnsChanges gives the fields changed together with a reset to the requester.
	ResetOwnsChanges bool
	// ScaleTracksOwners records the field manager of replicas that are set through scale.
	ScaleTracksOwners bool
	// CustomAge gives custom types without columns the column Age, not Created At.
	CustomAge bool
	// ClusterInfoFullToken signs cluster-info with the whole token, not its secret part.
	ClusterInfoFullToken bool
	// DenyEscalatingExec makes that admission plugin available.
	DenyEscalatingExec bool
	// SpecifiedNames also accepts the field names of the specification.
	SpecifiedNames bool
	// BareItems omits kind and apiVersion from the items of lists of built-in types.
	BareItems bool
	// NameOwnAudiences names the audiences of the API in the status of TokenReviews that request none.
	NameOwnAudiences bool
}

// Platform is the neutral vocabulary of the specification, the default.
func Platform() Vocabulary {
	return Vocabulary{
		Name: "platform", Release: "1.21", Protobuf: "application/vnd.platform.protobuf", Extension: "x-platform-",
		NamespaceFinalizer: "platform", ApprovalCondition: "PlatformAPIApprovalPolicyConformant", InitialEventsEnd: "platform.io/initial-events-end",
		TokenIssuer: "https://platform.default.svc", LegacyTokenIssuer: "platform/serviceaccount", APIService: "platform",
		Domain: "platform.io", NodeAgent: "nodeagent", Definitions: "io.platform.", groupSuffix: ".platform.io", namespacePrefix: "platform-", domainSuffix: ".platform.io",
		Signers: Signers{
			Client: "platform.io/apiserver-client", NodeClient: "platform.io/apiserver-client-nodeagent",
			NodeServing: "platform.io/nodeagent-serving", LegacyUnknown: "platform.io/legacy-unknown",
		},
		Behaviour: Behaviour{CreatedStatus: 200, ContinueAlways: true, ResetOwnsChanges: true, ClusterInfoFullToken: true, DenyEscalatingExec: true, SpecifiedNames: true},
	}
}

// K8s is the vocabulary of Kubernetes, for stock clients.
func K8s() Vocabulary {
	return Vocabulary{
		Name: "k8s", Release: "1.36", Protobuf: "application/vnd.kubernetes.protobuf", Extension: "x-kubernetes-",
		NamespaceFinalizer: "kubernetes", ApprovalCondition: "KubernetesAPIApprovalPolicyConformant", InitialEventsEnd: "k8s.io/initial-events-end",
		TokenIssuer: "https://kubernetes.default.svc", LegacyTokenIssuer: "kubernetes/serviceaccount", APIService: "kubernetes",
		Domain: "kubernetes.io", NodeAgent: "kubelet", Definitions: "io.k8s.", groupSuffix: ".k8s.io", namespacePrefix: "kube-", domainSuffix: ".kubernetes.io",
		Signers: Signers{
			Client: "kubernetes.io/kube-apiserver-client", NodeClient: "kubernetes.io/kube-apiserver-client-kubelet",
			NodeServing: "kubernetes.io/kubelet-serving", LegacyUnknown: "kubernetes.io/legacy-unknown",
		},
		Behaviour: Behaviour{CreatedStatus: 201, EmptyManagedFieldsReset: true, ScaleTracksOwners: true, CustomAge: true, BareItems: true, NameOwnAudiences: true},
	}
}

// Parse returns the vocabulary for the value of --vocabulary.
func Parse(name string) (Vocabulary, error) {
	switch name {
	case "platform":
		return Platform(), nil
	case "k8s":
		return K8s(), nil
	}
	return Vocabulary{}, fmt.Errorf("unknown vocabulary %q: use platform or k8s", name)
}

// Group returns the API group with the short name that code and data of this project use:
// a group whose suffix depends on the vocabulary is written without the suffix and with a
// trailing dot ("certificates."), all others as they are ("apps", "").
func (v Vocabulary) Group(short string) string {
	if stem, ok := strings.CutSuffix(short, "."); ok {
		return stem + v.groupSuffix
	}
	return short
}

// ShortGroup is the inverse of Group.
func (v Vocabulary) ShortGroup(group string) string {
	if stem, ok := strings.CutSuffix(group, v.groupSuffix); ok {
		return stem + "."
	}
	return group
}

// DeprecationAnnotation returns the key of an audit annotation about a deprecated version, as in
// platform.io/<name> and k8s.io/<name>.
func (v Vocabulary) DeprecationAnnotation(name string) string {
	return strings.TrimPrefix(v.groupSuffix, ".") + "/" + name
}

// DefinitionFinalizer returns the finalizer that keeps a CustomResourceDefinition until
// the objects of its types are deleted.
func (v Vocabulary) DefinitionFinalizer() string {
	return "customresourcecleanup." + v.Group("apiextensions.")
}

// TokenVolume returns the name prefix of the service account token volumes of pods.
func (v Vocabulary) TokenVolume() string { return v.namespacePrefix + "api-access-" }

// TokenLastUsed returns the label of a token Secret with the date of the last recorded use.
func (v Vocabulary) TokenLastUsed() string { return v.Qualified("", "legacy-token-last-used") }

// TokenInvalidSince returns the label of a token Secret whose token is refused, with a date.
func (v Vocabulary) TokenInvalidSince() string { return v.Qualified("", "legacy-token-invalid-since") }

// TokenTracking returns the name of the ConfigMap in the system namespace whose entry since is the
// date of the first recorded use.
func (v Vocabulary) TokenTracking() string {
	return v.Namespace("apiserver-legacy-service-account-token-tracking")
}

// ClaimFinalizer returns the finalizer that keeps a PersistentVolumeClaim while a pod uses
// it.
func (v Vocabulary) ClaimFinalizer() string { return v.Qualified("", "pvc-protection") }

// VolumeFinalizer returns the finalizer that keeps a PersistentVolume while a claim is
// bound to it.
func (v Vocabulary) VolumeFinalizer() string { return v.Qualified("", "pv-protection") }

// AttributesClassFinalizer returns the finalizer that keeps a VolumeAttributesClass while a
// volume or a claim names it.
func (v Vocabulary) AttributesClassFinalizer() string { return v.Qualified("", "vac-protection") }

// Namespace returns the name of a system namespace, by "system", "public" or "node-lease".
func (v Vocabulary) Namespace(role string) string { return v.namespacePrefix + role }

// RootCertificate returns the name of the ConfigMap with the CA certificates of the API in
// every namespace.
func (v Vocabulary) RootCertificate() string { return v.namespacePrefix + "root-ca.crt" }

// Qualified returns a name in the domain of the vocabulary, as in platform.io/<name>, or in
// a subdomain, as in bootstrap.platform.io/<name>.
func (v Vocabulary) Qualified(subdomain, name string) string {
	if subdomain == "" {
		return v.Domain + "/" + name
	}
	return subdomain + v.domainSuffix + "/" + name
}
