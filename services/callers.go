package services

import (
	"slices"

	"github.com/portico-platform/portico/services/resource"
)

// Caller is a service that may call a method.
type Caller struct {
	// Service is the name in the caller's certificate.
	Service string
	// Types are the resource types that it may name in its requests, their groups in
	// the short form of package vocabulary ("storage."); nil means any.
	Types []resource.GroupResource
	// Custom is set if it may name any custom type besides Types.
	Custom bool
	// Part is the field of an object that it may change, such as status.used; empty
	// means any.
	Part string
}

// Callers lists, for each contract or method (as in "Store/Create"), the services that may call it, and for
// which resource types. The transport checks the peer's certificate and the request against it. A call without
// a row is refused; the row of a method overrides that of its contract.
//
//	service    reads                                       follows      changes
//	frontdoor  any type                                    any type     any type
//	authn      secrets, serviceaccounts, pods;             nothing      nothing
//	           it lists revocations
//	authz      roles, bindings; what nodes need: pods,     the same     nothing
//	           persistentvolumes, volumeattachments,
//	           resourceslices, podcertificaterequests
//	admission  what its plugins read: typesOfAdmission,    its mirrors  resourcequotas: status.used; new namespaces;
//	           and custom types, for policies                           admissionservices: status
//
// Reading is Store/Get and Store/List; readers may also call Store/Revision, which
// reveals nothing about objects. Following is WatchHub/Replay and WatchHub/Keys:
// without the key of a type its changes on the bus cannot be read.
//
// Admission updates only the usage in the status of resource quotas, with a compare-and-swap, because no other
// service sees every new object in time, and the status of admission services, which only it knows. It creates
// namespaces for the plugin NamespaceAutoProvision.
//
// Workers (csr-signer, token-cleaner ...) have no rows, because they are only clients of the public API.
func Callers() map[string][]Caller {
	frontdoor := Caller{Service: "frontdoor"}
	authz := Caller{Service: "authz", Types: []resource.GroupResource{
		{Group: "rbac.authorization.", Resource: "roles"}, {Group: "rbac.authorization.", Resource: "rolebindings"},
		{Group: "rbac.authorization.", Resource: "clusterroles"}, {Group: "rbac.authorization.", Resource: "clusterrolebindings"},
		{Resource: "pods"}, {Resource: "persistentvolumes"}, {Group: "storage.", Resource: "volumeattachments"}, // mode Node
		{Group: "resource.", Resource: "resourceslices"}, {Group: "certificates.", Resource: "podcertificaterequests"},
	}}
	read, mirrored := typesOfAdmission()
	followers := []Caller{frontdoor, authz, {Service: "admission", Types: mirrored}}
	return map[string][]Caller{
		"Store/Get": {frontdoor, authz, {Service: "admission", Types: slices.Concat(read, mirrored), Custom: true},
			{Service: "authn", Types: []resource.GroupResource{{Resource: "secrets"}, {Resource: "serviceaccounts"}, {Resource: "pods"}, {Resource: "nodes"}}}},
		"Store/List": {frontdoor, authz, {Service: "authn", Types: []resource.GroupResource{{Group: "access.portico.dev", Resource: "revocations"}}},
			{Service: "admission", Types: slices.Concat(read, mirrored), Custom: true}},
		"Store/Revision": {frontdoor, {Service: "authn"}, {Service: "authz"}, {Service: "admission"}},
		"Store/Heads":    {frontdoor},
		"Store/Create":   {frontdoor, {Service: "admission", Types: []resource.GroupResource{{Resource: "namespaces"}}}},
		"Store/Update": {frontdoor, {Service: "admission", Types: []resource.GroupResource{{Resource: "resourcequotas"}}, Part: "status.used"},
			{Service: "admission", Types: []resource.GroupResource{{Group: "extension.portico.dev", Resource: "admissionservices"}}, Part: "status"}},
		"Store/Delete":    {frontdoor},
		"WatchHub/Replay": followers,
		"WatchHub/Keys":   followers,
		"Authn":           {frontdoor},
		"Authz":           {frontdoor, {Service: "admission"}},
		"Admission":       {frontdoor},
		"AdmissionBatch":  {{Service: "admission"}}, // of admission services, which the suite has none of
	}
}

// typesOfAdmission returns the types that admission's plugins read on demand, and those
// that they mirror.
func typesOfAdmission() (read, mirrored []resource.GroupResource) {
	return []resource.GroupResource{
			{Resource: "pods"}, {Resource: "configmaps"},
			{Resource: "services"}, {Resource: "endpoints"}, {Group: "discovery.", Resource: "endpointslices"},
			{Group: "rbac.authorization.", Resource: "roles"}, {Group: "rbac.authorization.", Resource: "clusterroles"},
			{Resource: "persistentvolumeclaims"}, {Resource: "persistentvolumes"}, {Group: "storage.", Resource: "csidrivers"}, // tokens of nodes
		}, []resource.GroupResource{
			{Resource: "namespaces"}, {Resource: "nodes"}, {Resource: "serviceaccounts"}, {Resource: "limitranges"}, {Resource: "resourcequotas"},
			{Group: "storage.", Resource: "storageclasses"}, {Group: "networking.", Resource: "ingressclasses"},
			{Group: "scheduling.", Resource: "priorityclasses"}, {Group: "node.", Resource: "runtimeclasses"}, {Group: "policy", Resource: "podsecuritypolicies"},
			{Group: "admissionregistration.", Resource: "mutatingwebhookconfigurations"},
			{Group: "admissionregistration.", Resource: "validatingwebhookconfigurations"},
			{Group: "admissionregistration.", Resource: "validatingadmissionpolicies"},
			{Group: "admissionregistration.", Resource: "validatingadmissionpolicybindings"},
			{Group: "admissionregistration.", Resource: "mutatingadmissionpolicies"},
			{Group: "admissionregistration.", Resource: "mutatingadmissionpolicybindings"},
			{Group: "apiextensions.", Resource: "customresourcedefinitions"},
			{Group: "extension.portico.dev", Resource: "admissionservices"},
		}
}
