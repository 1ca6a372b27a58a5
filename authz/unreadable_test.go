package authz

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// TestUnreadableBindings: a role or binding that cannot be read permits nothing, before and after a restart; a refusal and
// the rules name it, and everything else goes on.
func TestUnreadableBindings(t *testing.T) {
	cluster := fake.New(t)
	put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	bind(t, cluster, "readers", "reader", "jane")
	bind(t, cluster, "others", "reader", "joe")
	before := started(t, cluster)
	if d, err := before.Authorize(t.Context(), ask("jane")); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	damaged := resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: "clusterrolebindings"}, Name: "readers"}
	if err := before.bindings[0].WaitFor(t.Context(), cluster.Damage(damaged)); err != nil {
		t.Fatal(err)
	}
	for when, a := range map[string]*roleBased{"running": before, "started": started(t, cluster)} {
		d, err := a.Authorize(t.Context(), ask("jane"))
		for ; err == nil && d.Allowed; d, err = a.Authorize(t.Context(), ask("jane")) {
			<-a.current.Load().replaced
		}
		if err != nil || !strings.Contains(d.Reason, damaged.String()) || !strings.Contains(d.EvaluationError, damaged.String()) {
			t.Errorf("%s: %+v, %v", when, d, err)
		}
		if d, err := a.Authorize(t.Context(), ask("joe")); err != nil || !d.Allowed || d.Revision == 0 {
			t.Errorf("%s: another binding: %+v, %v", when, d, err)
		}
		rules, err := a.Rules(t.Context(), services.RulesRequest{User: services.UserInfo{Name: "jane"}, Namespace: "a"})
		if err != nil || !rules.Incomplete || !strings.Contains(rules.EvaluationError, damaged.String()) {
			t.Errorf("%s: rules %+v, %v", when, rules, err)
		}
		if d, err := a.Authorize(t.Context(), ask(services.UserAnonymous)); err != nil || strings.Contains(d.Reason, "readers") {
			t.Errorf("%s: anybody is told the name: %+v, %v", when, d, err)
		}
	}
	bind(t, cluster, "readers", "reader", "jane")
	if d, err := before.Authorize(t.Context(), ask("jane")); err != nil || !d.Allowed {
		t.Errorf("after its repair: %+v, %v", d, err)
	}
}
