// Package rbac finds which roles and bindings permit a request. It reads copies of the objects
// that a client may list, and decides nothing: authz does.
package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// masters is the group that may do everything, without a role.
const masters = "system:masters"

// Request is the request to check: an action on a resource, or on a path.
type Request struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Path        string `json:"path,omitempty"`
}

// String returns the request for a message.
func (r Request) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Name != "" {
		resource += fmt.Sprintf(" %q", r.Name)
	}
	if r.Namespace == "" {
		return r.Verb + " " + resource + " in all namespaces"
	}
	return r.Verb + " " + resource + " in namespace " + r.Namespace
}

// Policy is the roles and bindings of a cluster.
type Policy struct {
	Roles               []rbacv1.Role
	ClusterRoles        []rbacv1.ClusterRole
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
}

// Grant is a chain that permits a request: a binding names the subject and a role, and the role
// has the rule.
type Grant struct {
	Subject rbacv1.Subject     `json:"subject"`
	Binding string             `json:"binding"`
	Role    string             `json:"role"`
	Rule    *rbacv1.PolicyRule `json:"rule,omitempty"`
}

// String returns the chain.
func (g Grant) String() string {
	if g.Rule == nil {
		return fmt.Sprintf("%s <- %s <- %s", g.Role, g.Binding, SubjectName(g.Subject))
	}
	return fmt.Sprintf("%s <- %s <- %s <- %s", ruleText(*g.Rule), g.Role, g.Binding, SubjectName(g.Subject))
}

// SubjectName returns a subject with its kind.
func SubjectName(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return s.Kind + " " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

func ruleText(r rbacv1.PolicyRule) string {
	var parts []string
	for _, list := range []struct {
		name   string
		values []string
	}{{"verbs", r.Verbs}, {"apiGroups", r.APIGroups}, {"resources", r.Resources}, {"resourceNames", r.ResourceNames}, {"nonResourceURLs", r.NonResourceURLs}} {
		if len(list.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s %q", list.name, list.values))
		}
	}
	return "rule {" + strings.Join(parts, ", ") + "}"
}

// Who returns all grants of a request, for every subject.
func (p *Policy) Who(r Request) []Grant {
	grants := []Grant{{Subject: rbacv1.Subject{Kind: rbacv1.GroupKind, Name: masters}, Binding: "built in", Role: "everything"}}
	for _, b := range p.bindings(r) {
		for _, rule := range p.rules(b.ref, b.namespace) {
			if !permits(rule, r) {
				continue
			}
			for _, subject := range b.subjects {
				grants = append(grants, Grant{Subject: subject, Binding: b.name, Role: roleName(b.ref, b.namespace), Rule: &rule})
			}
			break // one rule explains the binding
		}
	}
	return grants
}

// Of returns the grants of a request that apply to a user.
func (p *Policy) Of(u User, r Request) []Grant {
	return slices.DeleteFunc(p.Who(r), func(g Grant) bool { return !u.is(g.Subject) })
}

// Bound returns the bindings that apply to a user where the request is made, without rules.
func (p *Policy) Bound(u User, r Request) (bound []Grant) {
	for _, b := range p.bindings(r) {
		for _, subject := range b.subjects {
			if u.is(subject) {
				bound = append(bound, Grant{Subject: subject, Binding: b.name, Role: roleName(b.ref, b.namespace)})
			}
		}
	}
	return bound
}

// Permitting returns the roles that permit a request to those who are bound to them.
func (p *Policy) Permitting(r Request) (names []string) {
	of := func(name string, rules []rbacv1.PolicyRule) {
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return permits(rule, r) }) {
			names = append(names, name)
		}
	}
	for _, role := range p.Roles {
		if role.Namespace == r.Namespace {
			of("Role "+role.Namespace+"/"+role.Name, role.Rules)
		}
	}
	for _, role := range p.ClusterRoles {
		of("ClusterRole "+role.Name, p.clusterRules(role))
	}
	return names
}

// User is a user with all groups.
type User struct {
	Name   string
	Groups []string
}

const (
	accountPrefix = "system:serviceaccount:"
	accountGroups = "system:serviceaccounts"
)

// NewUser returns a user with the groups that authentication adds.
func NewUser(name string, groups ...string) User {
	u := User{name, slices.Clone(groups)}
	if account, ok := strings.CutPrefix(name, accountPrefix); ok {
		namespace, _, _ := strings.Cut(account, ":")
		u.Groups = append(u.Groups, accountGroups, accountGroups+":"+namespace)
	}
	if name == "system:anonymous" {
		u.Groups = append(u.Groups, "system:unauthenticated")
	} else {
		u.Groups = append(u.Groups, "system:authenticated")
	}
	return u
}

func (u User) is(s rbacv1.Subject) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == u.Name
	case rbacv1.GroupKind:
		return slices.Contains(u.Groups, s.Name)
	case rbacv1.ServiceAccountKind:
		return u.Name == accountPrefix+s.Namespace+":"+s.Name
	}
	return false
}

// binding is a RoleBinding or a ClusterRoleBinding.
type binding struct {
	name      string
	namespace string // empty for all
	ref       rbacv1.RoleRef
	subjects  []rbacv1.Subject
}

// bindings returns those that apply where the request is made.
func (p *Policy) bindings(r Request) (all []binding) {
	for _, b := range p.ClusterRoleBindings {
		all = append(all, binding{"ClusterRoleBinding " + b.Name, "", b.RoleRef, b.Subjects})
	}
	for _, b := range p.RoleBindings {
		if r.Path == "" && r.Namespace != "" && b.Namespace == r.Namespace {
			all = append(all, binding{"RoleBinding " + b.Namespace + "/" + b.Name, b.Namespace, b.RoleRef, b.Subjects})
		}
	}
	return all
}

func roleName(ref rbacv1.RoleRef, namespace string) string {
	if ref.Kind == "Role" {
		return "Role " + namespace + "/" + ref.Name
	}
	return ref.Kind + " " + ref.Name
}

// rules returns the rules of a role; none if it does not exist.
func (p *Policy) rules(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	if ref.Kind == "Role" {
		for _, role := range p.Roles {
			if role.Name == ref.Name && role.Namespace == namespace {
				return role.Rules
			}
		}
		return nil
	}
	for _, role := range p.ClusterRoles {
		if role.Name == ref.Name {
			return p.clusterRules(role)
		}
	}
	return nil
}

// clusterRules returns the rules that count: of an aggregated role those of the roles that it
// selects, whatever it shows. A role that it selects may be aggregated itself.
func (p *Policy) clusterRules(role rbacv1.ClusterRole) []rbacv1.PolicyRule {
	return p.aggregated(role, map[string]bool{})
}

func (p *Policy) aggregated(role rbacv1.ClusterRole, seen map[string]bool) (rules []rbacv1.PolicyRule) {
	if seen[role.Name] {
		return nil
	}
	seen[role.Name] = true
	if role.AggregationRule == nil {
		return role.Rules
	}
	for _, selector := range role.AggregationRule.ClusterRoleSelectors {
		matches, err := metav1.LabelSelectorAsSelector(&selector)
		if err != nil {
			continue // it selects nothing
		}
		for _, other := range p.ClusterRoles {
			if matches.Matches(labels.Set(other.Labels)) {
				rules = append(rules, p.aggregated(other, seen)...)
			}
		}
	}
	return rules
}

func permits(rule rbacv1.PolicyRule, r Request) bool {
	if !has(rule.Verbs, r.Verb) {
		return false
	}
	if r.Path != "" {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return pattern == r.Path || open && strings.HasPrefix(r.Path, prefix)
		})
	}
	if !has(rule.APIGroups, r.Group) || len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, r.Name) {
		return false
	}
	if r.Subresource == "" {
		return has(rule.Resources, r.Resource)
	}
	return has(rule.Resources, r.Resource+"/"+r.Subresource) || slices.Contains(rule.Resources, "*/"+r.Subresource)
}

func has(values []string, value string) bool {
	return slices.Contains(values, "*") || slices.Contains(values, value)
}
