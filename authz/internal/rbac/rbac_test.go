package rbac

import (
	"fmt"
	"math/rand/v2"
	"strconv"
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
	var r []Change[Role]
	for _, manifest := range roles {
		role, err := ParseRole(stored(t, manifest))
		if err != nil {
			t.Fatal(err)
		}
		r = append(r, Change[Role]{Is: role})
	}
	var b []Change[Binding]
	for _, manifest := range bindings {
		binding, err := ParseBinding(stored(t, manifest))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, Change[Binding]{Is: binding})
	}
	return (&Index{}).Update(r, b)
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

// TestPathsOfNamespacedBindings: the rules of a user in a namespace include the paths of roles that are
// bound there, so the user may bind them there too, but they grant no access.
func TestPathsOfNamespacedBindings(t *testing.T) {
	x := compiled(t, []string{`{metadata: {name: op}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {nonResourceURLs: [/metrics], verbs: [get]}]}`},
		[]string{`{metadata: {name: 1, namespace: here}, roleRef: {kind: ClusterRole, name: op}, subjects: [{kind: User, name: u}]}`})
	u := services.UserInfo{Name: "u"}
	for namespace, want := range map[string]int{"here": 1, "there": 0, "": 0} {
		if rules := x.Rules(services.RulesRequest{User: u, Namespace: namespace}); len(rules.NonResource) != want {
			t.Errorf("in %q: %+v", namespace, rules)
		}
	}
	if x.Authorize(services.Attributes{User: u, Verb: "get", Path: "/metrics"}).Allowed {
		t.Error("a path is granted by a binding in a namespace")
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

// TestUpdatesEqualANewIndex: an index that was changed in many steps decides as one that was made
// from the same roles and bindings at once, and the steps leave older indexes as they were.
func TestUpdatesEqualANewIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) string { return strconv.Itoa(random.IntN(n)) }
	bindings, roles := map[Ref]*Binding{}, map[Ref]*Role{}
	binding := func(key Ref) *Binding {
		var subjects []string
		for range random.IntN(6) {
			subjects = append(subjects, `{kind: `+[]string{"User", "Group"}[random.IntN(2)]+`, name: s`+pick(4)+`}`)
		}
		b, err := ParseBinding(stored(t, `{metadata: {name: `+key.Name+`, namespace: "`+key.Namespace+`"}, roleRef: {kind: ClusterRole, name: r`+pick(6)+`}, subjects: [`+strings.Join(subjects, ", ")+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	role := func(key Ref) *Role {
		r, err := ParseRole(stored(t, `{metadata: {name: `+key.Name+`, labels: {to: l`+pick(3)+`}}, rules: [{apiGroups: [""], resources: [t`+pick(3)+`], verbs: [get]}]}`))
		if err == nil && random.IntN(3) == 0 {
			r, err = ParseRole(stored(t, `{metadata: {name: `+key.Name+`}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: l`+pick(3)+`}}]}}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	decisions := func(x *Index) string {
		var all strings.Builder
		for i := range 100 {
			d := x.Authorize(services.Attributes{User: services.UserInfo{Name: "s" + strconv.Itoa(i%4), Groups: []string{"s" + strconv.Itoa(i/4%5)}},
				Verb: "get", Resource: "t" + strconv.Itoa(i%3), Namespace: []string{"", "a", "b", "c"}[i/25]})
			fmt.Fprintln(&all, d.Allowed, d.Reason, d.EvaluationError)
		}
		return all.String()
	}
	x := &Index{}
	for step := range 120 {
		old, before := x, decisions(x)
		var b []Change[Binding]
		var r []Change[Role]
		for range random.IntN(20) {
			key := Ref{[]string{"", "a", "b"}[random.IntN(3)], "b" + pick(60)}
			var is *Binding
			if random.IntN(3) > 0 {
				is = binding(key)
			}
			if was := bindings[key]; was != nil || is != nil {
				b = append(b, Change[Binding]{was, is})
			}
			if bindings[key] = is; is == nil {
				delete(bindings, key)
			}
		}
		if key := (Ref{"", "r" + pick(6)}); step%3 == 0 {
			r = append(r, Change[Role]{roles[key], role(key)})
			roles[key] = r[0].Is
		}
		x = x.Update(r, b)
		b, r = nil, nil
		for _, is := range bindings {
			b = append(b, Change[Binding]{Is: is})
		}
		for _, is := range roles {
			r = append(r, Change[Role]{Is: is})
		}
		if got, want := decisions(x), decisions((&Index{}).Update(r, b)); got != want {
			t.Fatalf("step %d: %s\nwant %s", step, got, want)
		}
		if decisions(old) != before {
			t.Fatalf("step %d changed the older index", step)
		}
	}
	var b []Change[Binding]
	for _, was := range bindings {
		b = append(b, Change[Binding]{Was: was})
	}
	if x = x.Update(nil, b); x.namespaces.Len() != 0 || x.cluster.users.Len()+x.cluster.groups.Len() != 0 {
		t.Error("something is left of bindings that are gone")
	}
}

// largeBinding returns a binding with many subjects, of 1.5 MB.
func largeBinding(t testing.TB, namespace, name string) *Binding {
	var subjects strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&subjects, `,{"kind":"User","name":"%s-%d","apiGroup":"rbac.authorization.k8s.io"}`, name, i)
	}
	b, err := ParseBinding(services.Object{Key: resource.Key{Namespace: namespace, Name: name},
		JSON: []byte(`{"roleRef":{"kind":"ClusterRole","name":"pods"},"subjects":[` + subjects.String()[1:] + `]}`)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// BenchmarkUpdate measures the change of a binding beside 100 large ones, and of a large one.
func BenchmarkUpdate(b *testing.B) {
	var all []Change[Binding]
	for i := range 100 {
		all = append(all, Change[Binding]{Is: largeBinding(b, "n", "b"+strconv.Itoa(i))})
	}
	small, err := ParseBinding(stored(b, testBindings[1]))
	if err != nil {
		b.Fatal(err)
	}
	x := compiled(b, testRoles, testBindings).Update(nil, all)
	for name, changed := range map[string]*Binding{"small": small, "large": largeBinding(b, "n", "other")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Update(nil, []Change[Binding]{{Is: changed}}).Update(nil, []Change[Binding]{{Was: changed}})
			}
		})
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

// TestSame: bindings are the same if their role and subjects are, whatever else they have.
func TestSame(t *testing.T) {
	parse := func(name, role, subjects string) *Binding {
		b, err := ParseBinding(stored(t, `{metadata: {name: b, labels: {a: `+name+`}}, roleRef: {`+role+`}, subjects: [`+subjects+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one := parse("x", "kind: ClusterRole, name: r", "{kind: User, name: u}, {kind: ServiceAccount, name: s, namespace: ns}")
	for name, c := range map[string]struct {
		other *Binding
		want  bool
	}{
		"other labels, another order": {parse("y", "kind: ClusterRole, name: r", "{kind: ServiceAccount, name: s, namespace: ns}, {kind: User, name: u}"), true},
		"another role":                {parse("x", "kind: ClusterRole, name: r2", "{kind: User, name: u}, {kind: ServiceAccount, name: s, namespace: ns}"), false},
		"another kind of role":        {parse("x", "kind: Role, name: r", "{kind: User, name: u}, {kind: ServiceAccount, name: s, namespace: ns}"), false},
		"fewer subjects":              {parse("x", "kind: ClusterRole, name: r", "{kind: User, name: u}"), false},
		"another subject":             {parse("x", "kind: ClusterRole, name: r", "{kind: Group, name: u}, {kind: ServiceAccount, name: s, namespace: ns}"), false},
	} {
		if got := one.Same(c.other); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
