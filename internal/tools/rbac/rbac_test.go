package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rule(verb, group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

func TestPermits(t *testing.T) {
	paths := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/logs/*"}}
	for name, c := range map[string]struct {
		rule    rbacv1.PolicyRule
		request Request
		want    bool
	}{
		"exact":                         {rule("get", "", "pods"), Request{Verb: "get", Resource: "pods"}, true},
		"other verb":                    {rule("get", "", "pods"), Request{Verb: "list", Resource: "pods"}, false},
		"other group":                   {rule("get", "apps", "pods"), Request{Verb: "get", Resource: "pods"}, false},
		"everything":                    {rule("*", "*", "*"), Request{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale"}, true},
		"resource is not subresource":   {rule("get", "", "pods"), Request{Verb: "get", Resource: "pods", Subresource: "log"}, false},
		"subresource":                   {rule("get", "", "pods/log"), Request{Verb: "get", Resource: "pods", Subresource: "log"}, true},
		"subresource of all":            {rule("get", "", "*/log"), Request{Verb: "get", Resource: "pods", Subresource: "log"}, true},
		"name":                          {rule("get", "", "pods", "a"), Request{Verb: "get", Resource: "pods", Name: "a"}, true},
		"other name":                    {rule("get", "", "pods", "a"), Request{Verb: "get", Resource: "pods", Name: "b"}, false},
		"no name":                       {rule("get", "", "pods", "a"), Request{Verb: "get", Resource: "pods"}, false},
		"path":                          {paths, Request{Verb: "get", Path: "/healthz"}, true},
		"path below":                    {paths, Request{Verb: "get", Path: "/logs/a"}, true},
		"path beside":                   {paths, Request{Verb: "get", Path: "/healthz/ping"}, false},
		"resource rule is for no path":  {rule("*", "*", "*"), Request{Verb: "get", Path: "/metrics"}, false},
		"path rule is for no resources": {paths, Request{Verb: "get", Resource: "pods"}, false},
	} {
		if got := permits(c.rule, c.request); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func policy() *Policy {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	return &Policy{
		ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: meta("", "view"), Rules: []rbacv1.PolicyRule{rule("get", "", "pods")}}},
		Roles:        []rbacv1.Role{{ObjectMeta: meta("shop", "edit"), Rules: []rbacv1.PolicyRule{rule("create", "", "pods")}}},
		RoleBindings: []rbacv1.RoleBinding{
			{ObjectMeta: meta("shop", "viewers"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "staff"}}},
			{ObjectMeta: meta("shop", "bots"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "edit"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ci", Name: "bot"}}},
			{ObjectMeta: meta("shop", "broken"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "none"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}}},
		},
	}
}

func TestChains(t *testing.T) {
	for name, c := range map[string]struct {
		user    User
		request Request
		want    []string // bindings
	}{
		"by group":            {NewUser("alice", "staff"), Request{Verb: "get", Resource: "pods", Namespace: "shop"}, []string{"RoleBinding shop/viewers"}},
		"in another place":    {NewUser("alice", "staff"), Request{Verb: "get", Resource: "pods", Namespace: "other"}, nil},
		"in all namespaces":   {NewUser("alice", "staff"), Request{Verb: "get", Resource: "pods"}, nil},
		"without the group":   {NewUser("alice"), Request{Verb: "get", Resource: "pods", Namespace: "shop"}, nil},
		"role does not exist": {NewUser("alice"), Request{Verb: "create", Resource: "pods", Namespace: "shop"}, nil},
		"account":             {NewUser("system:serviceaccount:ci:bot"), Request{Verb: "create", Resource: "pods", Namespace: "shop"}, []string{"RoleBinding shop/bots"}},
		"masters":             {NewUser("root", "system:masters"), Request{Verb: "delete", Resource: "nodes"}, []string{"built in"}},
	} {
		got := policy().Of(c.user, c.request)
		if len(got) != len(c.want) || len(got) > 0 && got[0].Binding != c.want[0] {
			t.Errorf("%s: %v", name, got)
		}
	}
	request := Request{Verb: "create", Resource: "pods", Namespace: "shop"}
	if got := policy().Permitting(request); len(got) != 1 || got[0] != "Role shop/edit" {
		t.Errorf("permitting: %v", got)
	}
	if got := policy().Bound(NewUser("alice", "staff"), request); len(got) != 2 {
		t.Errorf("bound: %v", got)
	}
}

// TestAggregation: roles are aggregated through others, also in a circle, and what they show does
// not count.
func TestAggregation(t *testing.T) {
	role := func(name, label, selects string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
		r := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"to": label}}, Rules: rules}
		if selects != "" {
			r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": selects}}}}
		}
		return r
	}
	p := &Policy{ClusterRoles: []rbacv1.ClusterRole{
		role("admin", "", "admin", rule("delete", "", "pods")), role("edit", "admin", "edit"), role("more", "edit", "admin"), role("base", "edit", "", rule("get", "", "pods"))}}
	if got := p.Permitting(Request{Verb: "get", Resource: "pods"}); len(got) != 4 {
		t.Errorf("got %v", got)
	}
	if got := p.Permitting(Request{Verb: "delete", Resource: "pods"}); len(got) != 0 {
		t.Errorf("what is shown counts: %v", got)
	}
}
