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
	// the short form of package vocabulary ("storage."); nil is any.
	Types []resource.GroupResource
	// Part is the member of an object that it may change, as in status.used; empty is
	// any.
	Part string
}

// Callers says who may call what: for every contract, or one method of it as in
// "Store/Create", the services that may, and about which resource types. The
// transport checks it against the peer's certificate and the request; a call
// without a row is refused, and the row of a method holds instead of the row of
// its contract.
//
//	service    reads                                       follows      changes
//	frontdoor  any type                                    any type     any type
//	authn      secrets, serviceaccounts, pods              nothing      nothing
//	authz      roles, clusterroles and their bindings      the same     nothing
//	admission  what its plugins read: typesOfAdmission     its mirrors  resourcequotas: status.used
//
// Reading is Store/Get and Store/List; whoever reads may also ask for the
// revision, which shows nothing of an object. Following is WatchHub/Replay and
// WatchHub/Keys: without the key of a type its changes on the bus cannot be read.
//
// Admission updates one thing: what is in use in the status of a resource quota, with
// a compare-and-swap, because nobody else sees all that uses something up in time.
//
// Workers (csr-signer, token-cleaner ...) have no rows: they are clients of the
// public API and nothing else.
func Callers() map[string][]Caller {
	frontdoor := Caller{Service: "frontdoor"}
	authz := Caller{Service: "authz", Types: []resource.GroupResource{
		{Group: "rbac.authorization.", Resource: "roles"}, {Group: "rbac.authorization.", Resource: "rolebindings"},
		{Group: "rbac.authorization.", Resource: "clusterroles"}, {Group: "rbac.authorization.", Resource: "clusterrolebindings"},
	}}
	read, mirrored := typesOfAdmission()
	followers := []Caller{frontdoor, authz, {Service: "admission", Types: mirrored}}
	return map[string][]Caller{
		"Store/Get": {frontdoor, authz, {Service: "admission", Types: slices.Concat(read, mirrored)},
			{Service: "authn", Types: []resource.GroupResource{{Resource: "secrets"}, {Resource: "serviceaccounts"}, {Resource: "pods"}}}},
		"Store/List":      {frontdoor, authz, {Service: "admission", Types: slices.Concat(read, mirrored)}},
		"Store/Revision":  {frontdoor, {Service: "authn"}, {Service: "authz"}, {Service: "admission"}},
		"Store/Create":    {frontdoor},
		"Store/Update":    {frontdoor, {Service: "admission", Types: []resource.GroupResource{{Resource: "resourcequotas"}}, Part: "status.used"}},
		"Store/Delete":    {frontdoor},
		"WatchHub/Replay": followers,
		"WatchHub/Keys":   followers,
		"Authn":           {frontdoor},
		"Authz":           {frontdoor, {Service: "admission"}},
		"Admission":       {frontdoor},
	}
}

// typesOfAdmission returns the types that admission's plugins read now and then,
// and those that they mirror.
func typesOfAdmission() (read, mirrored []resource.GroupResource) {
	return []resource.GroupResource{
			{Resource: "pods"}, {Resource: "services"},
			{Group: "rbac.authorization.", Resource: "roles"}, {Group: "rbac.authorization.", Resource: "clusterroles"},
		}, []resource.GroupResource{
			{Resource: "namespaces"}, {Resource: "serviceaccounts"}, {Resource: "limitranges"}, {Resource: "resourcequotas"},
			{Group: "storage.", Resource: "storageclasses"}, {Group: "networking.", Resource: "ingressclasses"},
			{Group: "scheduling.", Resource: "priorityclasses"}, {Group: "node.", Resource: "runtimeclasses"},
			{Group: "admissionregistration.", Resource: "mutatingwebhookconfigurations"},
			{Group: "admissionregistration.", Resource: "validatingwebhookconfigurations"},
		}
}
