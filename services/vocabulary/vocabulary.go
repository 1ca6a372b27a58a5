// Package vocabulary is the one table of names that differ between the
// specification and the original. A service asks it wherever such a name is
// needed; it is chosen once, at start, and stays the same for the life of the
// data. No byte of a message is ever rewritten: names are right when they are
// made. It serves the naming convention at the head of the specification.
package vocabulary

import (
	"fmt"
	"strings"
)

// Vocabulary is one choice of names. The zero value is not usable: take Platform
// or K8s, or Parse a flag.
type Vocabulary struct {
	// Name is the value of --vocabulary.
	Name string
	// Protobuf is the media type of the Protobuf envelope.
	Protobuf string
	// Extension is the prefix of schema extensions, as in x-platform-list-type.
	Extension string
	// NamespaceFinalizer holds a namespace, in its spec.finalizers, until its
	// contents are gone.
	NamespaceFinalizer string
	// ApprovalCondition reports whether a custom type in a protected group is approved of.
	ApprovalCondition string
	// InitialEventsEnd annotates the bookmark that closes the initial events of a watch.
	InitialEventsEnd string
	// TokenIssuer issues service account tokens that are bound to an audience, unless
	// a flag names another; LegacyTokenIssuer those that are kept in secrets.
	TokenIssuer, LegacyTokenIssuer string
	// APIService is the Service in the default namespace by which the API is found.
	APIService string
	// Domain qualifies plain names, as in platform.io/legacy-unknown.
	Domain string
	// Definitions is the prefix of schema names in published documents.
	Definitions string
	// groupSuffix ends the names of the API groups that the maker owns.
	groupSuffix string
	// namespacePrefix starts the names of the system namespaces, and of what the
	// service puts into every namespace.
	namespacePrefix string
	// domainSuffix ends qualified domains that are not API groups, as in
	// bootstrap.platform.io/token.
	domainSuffix string

	// Signers are the names of the built-in certificate signers.
	Signers Signers
	// Differences of behaviour where the specification and the original differ.
	Behaviour Behaviour
}

// Signers are the built-in signers' names (section "Built-in signers").
type Signers struct {
	Client, NodeClient, NodeServing, LegacyUnknown string
}

// Behaviour is where the specification and the original behave otherwise.
type Behaviour struct {
	// CreatedStatus is the HTTP status of a successful create.
	CreatedStatus int
	// ContinueAlways writes metadata.continue in every list, empty at the end.
	ContinueAlways bool
	// EmptyManagedFieldsReset lets an empty metadata.managedFields list reset ownership.
	EmptyManagedFieldsReset bool
	// ResetOwnsChanges gives the fields changed together with a reset to the requester.
	ResetOwnsChanges bool
	// ScaleTracksOwners records who owns the replicas that are set through scale.
	ScaleTracksOwners bool
	// CustomAge gives custom types without columns the column Age, not Created At.
	CustomAge bool
	// ClusterInfoFullToken signs cluster-info with the whole token, not its secret part.
	ClusterInfoFullToken bool
	// DenyEscalatingExec says whether that admission plugin exists.
	DenyEscalatingExec bool
	// SpecifiedNames accepts fields by the names that the specification has for them too.
	SpecifiedNames bool
	// BareItems leaves kind and apiVersion out of the items of lists of built-in types.
	BareItems bool
}

// Platform is the neutral vocabulary of the specification, the default.
func Platform() Vocabulary {
	return Vocabulary{
		Name: "platform", Protobuf: "application/vnd.platform.protobuf", Extension: "x-platform-",
		NamespaceFinalizer: "platform", ApprovalCondition: "PlatformAPIApprovalPolicyConformant", InitialEventsEnd: "platform.io/initial-events-end",
		TokenIssuer: "https://platform.default.svc", LegacyTokenIssuer: "platform/serviceaccount", APIService: "platform",
		Domain: "platform.io", Definitions: "io.platform.", groupSuffix: ".platform.io", namespacePrefix: "platform-", domainSuffix: ".platform.io",
		Signers: Signers{
			Client: "platform.io/apiserver-client", NodeClient: "platform.io/apiserver-client-nodeagent",
			NodeServing: "platform.io/nodeagent-serving", LegacyUnknown: "platform.io/legacy-unknown",
		},
		Behaviour: Behaviour{CreatedStatus: 200, ContinueAlways: true, ResetOwnsChanges: true, ClusterInfoFullToken: true, DenyEscalatingExec: true, SpecifiedNames: true},
	}
}

// K8s is the original vocabulary, for stock clients.
func K8s() Vocabulary {
	return Vocabulary{
		Name: "k8s", Protobuf: "application/vnd.kubernetes.protobuf", Extension: "x-kubernetes-",
		NamespaceFinalizer: "kubernetes", ApprovalCondition: "KubernetesAPIApprovalPolicyConformant", InitialEventsEnd: "k8s.io/initial-events-end",
		TokenIssuer: "https://kubernetes.default.svc", LegacyTokenIssuer: "kubernetes/serviceaccount", APIService: "kubernetes",
		Domain: "kubernetes.io", Definitions: "io.k8s.", groupSuffix: ".k8s.io", namespacePrefix: "kube-", domainSuffix: ".kubernetes.io",
		Signers: Signers{
			Client: "kubernetes.io/kube-apiserver-client", NodeClient: "kubernetes.io/kube-apiserver-client-kubelet",
			NodeServing: "kubernetes.io/kubelet-serving", LegacyUnknown: "kubernetes.io/legacy-unknown",
		},
		Behaviour: Behaviour{CreatedStatus: 201, EmptyManagedFieldsReset: true, ScaleTracksOwners: true, CustomAge: true, BareItems: true},
	}
}

// Parse returns the vocabulary of a --vocabulary flag.
func Parse(name string) (Vocabulary, error) {
	switch name {
	case "platform":
		return Platform(), nil
	case "k8s":
		return K8s(), nil
	}
	return Vocabulary{}, fmt.Errorf("unknown vocabulary %q: use platform or k8s", name)
}

// Group returns the API group with the short name that this project writes in
// code and data: one of the maker's is written without its domain and with a
// closing dot ("certificates."), all others as they are ("apps", "").
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

// DefinitionFinalizer holds a CustomResourceDefinition until the objects of its
// types are gone.
func (v Vocabulary) DefinitionFinalizer() string {
	return "customresourcecleanup." + v.Group("apiextensions.")
}

// TokenVolume begins the names of volumes with which pods get the token of their account.
func (v Vocabulary) TokenVolume() string { return v.namespacePrefix + "api-access-" }

// ClaimFinalizer and VolumeFinalizer hold a PersistentVolumeClaim while a pod uses it,
// and a PersistentVolume while a claim is bound to it.
func (v Vocabulary) ClaimFinalizer() string { return v.Qualified("", "pvc-protection") }

// VolumeFinalizer: see ClaimFinalizer.
func (v Vocabulary) VolumeFinalizer() string { return v.Qualified("", "pv-protection") }

// Namespace returns a system namespace: of "system", "public" or "node-lease".
func (v Vocabulary) Namespace(role string) string { return v.namespacePrefix + role }

// RootCertificate returns the name of the ConfigMap that tells, in every namespace,
// whom to trust for the API.
func (v Vocabulary) RootCertificate() string { return v.namespacePrefix + "root-ca.crt" }

// Qualified returns a name in the maker's domain, as in platform.io/<name>, or
// with a sub-domain, as in bootstrap.platform.io/<name>.
func (v Vocabulary) Qualified(subdomain, name string) string {
	if subdomain == "" {
		return v.Domain + "/" + name
	}
	return subdomain + v.domainSuffix + "/" + name
}
