// Package backends connects the front door to the services that it calls. In front of those in
// another process it keeps what they have answered, for as long as that holds: followed
// changes end it. In the all-in-one a call costs less than a cache, and there is none.
package backends

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/revocation"
)

// Services are the services that the front door calls.
type Services struct {
	Authn     services.Authn
	Authz     services.Authz
	Admission services.Admission
	Changes   changes.Source
	// Store answers requests of clients; reads may be answered from copies. Direct is the same
	// without copies, for what makes its own.
	Store, Direct services.Store
	// Decisions is Authz for the requests of clients. Its decisions may be cached.
	Decisions services.Authz

	policy *Policy
}

// Connect connects to the services, in this process or in others. copied bounds the bytes of
// objects that are kept of a store in another process; 0 for none.
func Connect(ctx context.Context, n *run.Node, copied int64) (s Services, err error) {
	if s.Authn, err = contract.Authn.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Authz, err = contract.Authz.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Admission, err = contract.Admission.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Direct, err = contract.Store.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Changes, err = changes.Use(ctx, n); err != nil {
		return s, err
	}
	s.Store = s.Direct
	if heads, ok := s.Direct.(services.HeadReader); ok && copied > 0 && !contract.Store.Local(n) {
		kept := NewStore(StoreConfig{Store: s.Direct, Heads: heads, Changes: s.Changes, Bytes: copied, Log: n.Log, Metrics: n.Metrics})
		n.Go("copies of resource types", kept.Run)
		s.Store = kept
	}
	types := inGroup("rbac.authorization.", "clusterroles", "roles", "clusterrolebindings", "rolebindings")
	s.policy = newPolicy(s.heads(n, types), types) // heads has replaced the short forms
	s.Store, s.Decisions = policyStore{s.Store, s.policy}, current{s.Authz, s.policy.Newest}
	if !contract.Authz.Local(n) {
		s.Decisions = NewDecisions(s.Decisions, s.policy.Unchanged)
	}
	if !contract.Admission.Local(n) {
		configuring := s.heads(n, append(
			inGroup("admissionregistration.", "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "mutatingadmissionpolicies"),
			inGroup(admissionservice.Group, admissionservice.Resource)...))
		follow(n, "webhooks, policies and admission services", configuring)
		inhabited := newResidents(s.heads(n, inGroup("", "namespaces", "resourcequotas")))
		follow(n, "namespaces and quotas", inhabited.heads)
		s.Admission = NewAdmission(s.Admission, configuring.Unchanged, inhabited.unchanged)
	}
	return s, nil
}

// inGroup returns resource types of a group, both in short form.
func inGroup(group string, resources ...string) (types []resource.GroupResource) {
	for _, name := range resources {
		types = append(types, resource.GroupResource{Group: group, Resource: name})
	}
	return types
}

// heads returns heads of resource types in short form, which are not followed yet.
func (s Services) heads(n *run.Node, types []resource.GroupResource) *changes.Heads {
	for i := range types {
		types[i].Group = n.Vocabulary.Group(types[i].Group)
	}
	return changes.NewHeads(s.Changes, s.Direct, types...)
}

// follow begins to follow.
func follow(n *run.Node, what string, heads *changes.Heads, observers ...changes.Observer) {
	for _, o := range observers {
		heads.Observe(o)
	}
	for _, loop := range heads.Loops() {
		n.Go("following changes of "+what, loop)
	}
}

// Policy returns what is known of the newest role or binding.
func (s Services) Policy() *Policy { return s.policy }

// Observers are notified of changes of permissions: of roles and bindings, of the types that
// credentials are bound to, and of Revocations.
type Observers struct{ Policy, Bound, Revoked []changes.Observer }

// Follow begins to follow these types. It must be called once.
func (s Services) Follow(n *run.Node, o Observers) {
	follow(n, "roles and bindings", s.policy.heads, o.Policy...)
	follow(n, "what credentials are bound to", s.heads(n, inGroup("", "secrets", "serviceaccounts", "pods", "nodes")), o.Bound...)
	follow(n, "revocations", s.heads(n, inGroup(revocation.Group, revocation.Resource)), o.Revoked...)
}
