// Package backends connects the front door to the services that it calls. In front of those in
// another process it keeps what they have answered, for as long as that holds: followed
// changes end it. In the all-in-one a call costs less than a cache, and there is none.
package backends

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
)

// Services are the services that the front door calls.
type Services struct {
	Authn     services.Authn
	Authz     services.Authz
	Admission services.Admission
	Store     services.Store
	Changes   changes.Source
	// Decisions is Authz for the requests of clients. Its decisions may be cached.
	Decisions services.Authz
}

// Connect connects to the services, in this process or in others.
func Connect(ctx context.Context, n *run.Node) (s Services, err error) {
	if s.Authn, err = contract.Authn.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Authz, err = contract.Authz.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Admission, err = contract.Admission.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Store, err = contract.Store.Use(ctx, n); err != nil {
		return s, err
	}
	if s.Changes, err = changes.Use(ctx, n); err != nil {
		return s, err
	}
	s.Decisions = s.Authz
	if !contract.Authz.Local(n) {
		policy := s.heads(n, "rbac.authorization.", "clusterroles", "roles", "clusterrolebindings", "rolebindings")
		s.Decisions = NewDecisions(s.Authz, policy.Unchanged)
	}
	return s, nil
}

// heads follows resource types of a group in short form.
func (s Services) heads(n *run.Node, group string, resources ...string) *changes.Heads {
	var types []resource.GroupResource
	for _, name := range resources {
		types = append(types, resource.GroupResource{Group: n.Vocabulary.Group(group), Resource: name})
	}
	followed := changes.NewHeads(s.Changes, s.Store, types...)
	for _, loop := range followed.Loops() {
		n.Go("following changes of "+group, loop)
	}
	return followed
}
