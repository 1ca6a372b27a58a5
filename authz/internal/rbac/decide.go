package rbac

import (
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"github.com/portico-platform/portico/services"
)

// Authorize decides one request: allowed, or no opinion.
func (x *Index) Authorize(a services.Attributes) services.Decision {
	q := newQuestion(a)
	var decision services.Decision
	x.visit(a.User, a.Namespace, func(g *grant) bool {
		rules, ok := x.rules(g.binding.role)
		if !ok {
			decision.EvaluationError = missing(g.binding.role)
		}
		for _, rule := range rules {
			if rule.allows(&q) {
				decision = services.Decision{Allowed: true, Reason: "RBAC: allowed by " + g.reason(), AnyName: len(rule.ResourceNames) == 0, Rule: rule.String()}
				return false
			}
		}
		return true
	})
	if !decision.Allowed {
		decision.Miss = x.nearest(&q)
	}
	return decision
}

// AuthorizeByRole decides one request by the rules of a role, whoever holds it.
func (x *Index) AuthorizeByRole(role Ref, a services.Attributes) services.Decision {
	q := newQuestion(a)
	rules, ok := x.rules(role)
	if !ok {
		return services.Decision{EvaluationError: missing(role)}
	}
	for _, rule := range rules {
		if rule.allows(&q) {
			return services.Decision{Allowed: true, Reason: "NODE: allowed by the rules of " + role.Name}
		}
	}
	return services.Decision{}
}

// Rules lists everything that a user may do in a namespace.
func (x *Index) Rules(r services.RulesRequest) services.Rules {
	var answer services.Rules
	x.visit(r.User, r.Namespace, func(g *grant) bool {
		rules, ok := x.rules(g.binding.role)
		if !ok {
			answer.Incomplete, answer.EvaluationError = true, missing(g.binding.role)
		}
		for _, rule := range rules {
			list(rule, &answer)
		}
		return true
	})
	return answer
}

// list adds one rule of a role to an answer.
func list(r *Rule, into *services.Rules) {
	if len(r.Resources) > 0 {
		into.Resource = append(into.Resource, services.ResourceRule{
			Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
	}
	if len(r.NonResourceURLs) > 0 {
		into.NonResource = append(into.NonResource, services.NonResourceRule{Verbs: r.Verbs, Paths: r.NonResourceURLs})
	}
}

// visitor is called with one grant; it returns false to stop.
type visitor func(*grant) bool

// visit visits the grants of a user in the cluster and in a namespace.
func (x *Index) visit(u services.UserInfo, namespace string, see visitor) {
	if x.cluster.visit(u, see) && namespace != "" {
		x.scope(namespace).visit(u, see)
	}
}

func (s *scope) visit(u services.UserInfo, see visitor) bool {
	if s == nil {
		return true
	}
	if !visitHolder(s.users, u.Name, see) {
		return false
	}
	for _, group := range u.Groups {
		if !visitHolder(s.groups, group, see) {
			return false
		}
	}
	// A grant to every user or group does not cover requests without an identity
	// (section "Anonymous access", 3).
	if u.Name == services.UserAnonymous || slices.Contains(u.Groups, services.GroupUnauthenticated) {
		return true
	}
	return visitHolder(s.users, wildcard, see) && visitHolder(s.groups, wildcard, see)
}

func visitHolder(of *btree.Map[string, held], name string, see visitor) bool {
	found, ok := of.Get(name)
	return !ok || found.visit(see)
}

func missing(role Ref) string {
	if role.Namespace == "" {
		return fmt.Sprintf("clusterrole %q not found", role.Name)
	}
	return fmt.Sprintf("role %q not found in namespace %q", role.Name, role.Namespace)
}
