package rbac

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// stored converts a one-line manifest to a stored object.
func stored(t testing.TB, manifest string) services.Object {
	t.Helper()
	var object struct {
		Metadata struct {
			Name, Namespace string
			Labels          map[string]string
		}
	}
	json, err := yaml.YAMLToJSON([]byte(manifest))
	if err == nil {
		err = yaml.Unmarshal(json, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := object.Metadata
	return services.Object{Key: resource.Key{Namespace: m.Namespace, Name: m.Name}, JSON: json, Labels: m.Labels}
}

func compiled(t testing.TB, roles, bindings []string) *Index {
	t.Helper()
	var r []*Role
	for _, manifest := range roles {
		role, err := ParseRole(stored(t, manifest))
		if err != nil {
			t.Fatal(err)
		}
		r = append(r, role)
	}
	var b []*Binding
	for _, manifest := range bindings {
		binding, err := ParseBinding(stored(t, manifest))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, binding)
	}
	return Compile(r, b)
}

var testRoles = []string{
	`{metadata: {name: pods}, rules: [{apiGroups: [""], resources: [pods, "*/scale"], verbs: [get, list]}]}`,
	`{metadata: {name: logs}, rules: [{apiGroups: [""], resources: [pods/log], verbs: ["*"]}]}`,
	`{metadata: {name: one}, rules: [{apiGroups: ["*"], resources: [configmaps], resourceNames: [mine], verbs: [update]}]}`,
	`{metadata: {name: paths}, rules: [{nonResourceURLs: ["/healthz/*", /version], verbs: [get]}]}`,
	`{metadata: {name: all}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: all}}]}, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}`,
	`{metadata: {name: part, labels: {to: all}}, rules: [{apiGroups: [apps], resources: ["*"], verbs: [get]}]}`,
	`{metadata: {name: circle, labels: {to: all}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: circle}}, {matchLabels: {to: all}}]}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`,
	`{metadata: {name: inner, labels: {to: circle}}, rules: [{apiGroups: [batch], resources: [jobs], verbs: [get]}]}`,
	`{metadata: {name: local, namespace: a}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`,
}

var testBindings = []string{
	`{metadata: {name: 1}, roleRef: {kind: ClusterRole, name: pods}, subjects: [{kind: User, name: jane}, {kind: Group, name: ops}]}`,
	`{metadata: {name: 2, namespace: a}, roleRef: {kind: ClusterRole, name: logs}, subjects: [{kind: User, name: jane}]}`,
	`{metadata: {name: 3, namespace: a}, roleRef: {kind: Role, name: local}, subjects: [{kind: ServiceAccount, name: robot, namespace: b}]}`,
	`{metadata: {name: 4}, roleRef: {kind: ClusterRole, name: one}, subjects: [{kind: User, name: jane}]}`,
	`{metadata: {name: 5}, roleRef: {kind: ClusterRole, name: paths}, subjects: [{kind: Group, name: "*"}]}`,
	`{metadata: {name: 6}, roleRef: {kind: ClusterRole, name: all}, subjects: [{kind: User, name: gina}]}`,
	`{metadata: {name: 7}, roleRef: {kind: ClusterRole, name: gone}, subjects: [{kind: User, name: lost}]}`,
}

func TestAuthorize(t *testing.T) {
	x := compiled(t, testRoles, testBindings)
	jane := services.UserInfo{Name: "jane", Groups: []string{services.GroupAuthenticated}}
	ops := services.UserInfo{Name: "omar", Groups: []string{"ops"}}
	robot := services.UserInfo{Name: "system:serviceaccount:b:robot"}
	gina := services.UserInfo{Name: "gina"}
	anonymous := services.UserInfo{Name: services.UserAnonymous, Groups: []string{services.GroupUnauthenticated}}
	for _, c := range []struct {
		name string
		ask  services.Attributes
		want bool
	}{
		{"a grant in the cluster holds in a namespace", services.Attributes{User: jane, Verb: "get", Resource: "pods", Namespace: "a"}, true},
		{"and without one", services.Attributes{User: jane, Verb: "list", Resource: "pods"}, true},
		{"another verb", services.Attributes{User: jane, Verb: "delete", Resource: "pods", Namespace: "a"}, false},
		{"another group of resources", services.Attributes{User: jane, Verb: "get", Group: "apps", Resource: "pods"}, false},
		{"by group", services.Attributes{User: ops, Verb: "get", Resource: "pods"}, true},
		{"a resource does not cover its subresources", services.Attributes{User: ops, Verb: "get", Resource: "pods", Subresource: "log"}, false},
		{"a subresource of any resource", services.Attributes{User: ops, Verb: "get", Resource: "things", Subresource: "scale"}, true},
		{"which is not the resource", services.Attributes{User: ops, Verb: "get", Resource: "things"}, false},
		{"a cluster role bound in a namespace", services.Attributes{User: jane, Verb: "delete", Resource: "pods", Subresource: "log", Namespace: "a"}, true},
		{"holds in no other", services.Attributes{User: jane, Verb: "delete", Resource: "pods", Subresource: "log", Namespace: "b"}, false},
		{"a service account", services.Attributes{User: robot, Verb: "get", Resource: "secrets", Namespace: "a"}, true},
		{"its role is of one namespace", services.Attributes{User: robot, Verb: "get", Resource: "secrets", Namespace: "b"}, false},
		{"a named resource", services.Attributes{User: jane, Verb: "update", Resource: "configmaps", Name: "mine"}, true},
		{"another name", services.Attributes{User: jane, Verb: "update", Resource: "configmaps", Name: "yours"}, false},
		{"a path", services.Attributes{User: jane, Verb: "get", Path: "/version"}, true},
		{"a path below", services.Attributes{User: jane, Verb: "get", Path: "/healthz/etcd"}, true},
		{"another path", services.Attributes{User: jane, Verb: "get", Path: "/metrics"}, false},
		{"a grant to all groups does not cover who is anonymous", services.Attributes{User: anonymous, Verb: "get", Path: "/version"}, false},
		{"an aggregated role", services.Attributes{User: gina, Verb: "get", Group: "apps", Resource: "deployments"}, true},
		{"through another, in a circle", services.Attributes{User: gina, Verb: "get", Group: "batch", Resource: "jobs"}, true},
		{"rules that are stored in an aggregated role", services.Attributes{User: gina, Verb: "get", Resource: "nodes"}, false},
		{"and in one that it aggregates", services.Attributes{User: gina, Verb: "get", Resource: "secrets"}, false},
	} {
		if d := x.Authorize(c.ask); d.Allowed != c.want || d.Denied || d.Allowed == (d.Reason == "") {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
	d := x.Authorize(services.Attributes{User: services.UserInfo{Name: "lost"}, Verb: "get", Resource: "pods"})
	if d.Allowed || d.EvaluationError == "" {
		t.Errorf("a role that does not exist: %+v", d)
	}
}

func TestRules(t *testing.T) {
	x := compiled(t, testRoles, testBindings)
	jane := services.UserInfo{Name: "jane"}
	for namespace, want := range map[string]int{"a": 3, "b": 2} {
		rules := x.Rules(services.RulesRequest{User: jane, Namespace: namespace})
		if len(rules.Resource) != want || len(rules.NonResource) != 1 || rules.Incomplete {
			t.Errorf("in %s: %+v", namespace, rules)
		}
	}
	if rules := x.Rules(services.RulesRequest{User: services.UserInfo{Name: "lost"}}); !rules.Incomplete {
		t.Errorf("a role that does not exist: %+v", rules)
	}
}

func BenchmarkAuthorize(b *testing.B) {
	var bindings []string
	for i := range 5000 {
		bindings = append(bindings, fmt.Sprintf(
			`{metadata: {name: b%d, namespace: n%d}, roleRef: {kind: ClusterRole, name: pods}, subjects: [{kind: User, name: u%d}]}`, i, i%500, i))
	}
	x := compiled(b, testRoles, append(bindings, testBindings...))
	ask := services.Attributes{Verb: "get", Resource: "pods", Namespace: "n7", Name: "p",
		User: services.UserInfo{Name: "u7", Groups: []string{"g1", "g2", "g3", services.GroupAuthenticated}}}
	b.ReportAllocs()
	for b.Loop() {
		if !x.Authorize(ask).Allowed {
			b.Fatal("refused")
		}
	}
}

// TestExplanations: a decision names the rule that allowed the request, or the one that came
// closest to it, with its binding and role.
func TestExplanations(t *testing.T) {
	x := compiled(t, testRoles, testBindings)
	jane := services.UserInfo{Name: "jane"}
	for name, c := range map[string]struct {
		ask        services.Attributes
		rule, miss string
	}{
		"allowed":        {services.Attributes{User: jane, Verb: "get", Resource: "pods"}, "verbs [get list] on resources [pods */scale] in groups []", ""},
		"another verb":   {services.Attributes{User: jane, Verb: "delete", Resource: "pods"}, "", `ClusterRoleBinding "1" of ClusterRole "pods" to User "jane": verbs [get list] on resources [pods */scale] in groups [] does not cover the verb`},
		"another group":  {services.Attributes{User: jane, Verb: "get", Group: "apps", Resource: "pods"}, "", `ClusterRoleBinding "1" of ClusterRole "pods" to User "jane": verbs [get list] on resources [pods */scale] in groups [] does not cover the API group`},
		"another name":   {services.Attributes{User: jane, Verb: "update", Resource: "configmaps", Name: "yours"}, "", `ClusterRoleBinding "4" of ClusterRole "one" to User "jane": verbs [update] on resources [configmaps] in groups [*] named [mine] does not cover the name`},
		"name and verb":  {services.Attributes{User: jane, Verb: "get", Resource: "configmaps", Name: "yours"}, "", `ClusterRoleBinding "4" of ClusterRole "one" to User "jane": verbs [update] on resources [configmaps] in groups [*] named [mine] does not cover the verb and the name`},
		"nothing near":   {services.Attributes{User: jane, Verb: "get", Resource: "nodes"}, "", ""},
		"of others":      {services.Attributes{User: services.UserInfo{Name: "nobody"}, Verb: "delete", Resource: "pods"}, "", ""},
		"path":           {services.Attributes{User: jane, Verb: "post", Path: "/version"}, "", `ClusterRoleBinding "5" of ClusterRole "paths" to Group "*": verbs [get] on paths [/healthz/* /version] does not cover the verb`},
		"another path":   {services.Attributes{User: jane, Verb: "get", Path: "/metrics"}, "", ""},
		"its namespace":  {services.Attributes{User: jane, Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a"}, "verbs [*] on resources [pods/log] in groups []", ""},
		"not its own ns": {services.Attributes{User: jane, Verb: "get", Resource: "pods", Subresource: "log", Namespace: "b"}, "", ""},
	} {
		d := x.Authorize(c.ask)
		if d.Rule != c.rule || d.Miss != c.miss || d.Allowed != (c.rule != "") {
			t.Errorf("%s: allowed: %v, rule: %q, miss: %q", name, d.Allowed, d.Rule, d.Miss)
		}
	}
}

// TestLongRulesAreCutShort: whoever writes a role does not choose the size of decisions.
func TestLongRulesAreCutShort(t *testing.T) {
	role, err := ParseRole(stored(t, `{metadata: {name: r}, rules: [{apiGroups: [""], resources: [pods], verbs: [get, "`+strings.Repeat("ü", 10_000)+`"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if text := role.rules[0].String(); len(text) > maxRuleText+3 || !utf8.ValidString(text) {
		t.Errorf("%d bytes", len(text))
	}
}
