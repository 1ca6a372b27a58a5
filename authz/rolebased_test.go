package authz

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

const group = "rbac.example"

func TestContract(t *testing.T) {
	open := func(t *testing.T) services.Authz {
		cluster := fake.New(t)
		put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
		bind(t, cluster, "readers", "reader", "jane")
		return chain{{modeRBAC, started(t, cluster)}}
	}
	allowed := ask("jane")
	refused := allowed
	refused.Verb = "delete"
	kittest.LocalAndRemote(t, contract.Authz, open, func(t *testing.T, open func(*testing.T) services.Authz) {
		contracttest.Authz(t, open, contracttest.AuthzExample{
			Allowed: allowed, Refused: refused, Rules: services.RulesRequest{User: allowed.User, Namespace: "a"},
		})
	})
}

// TestGrantsHoldAtOnce: each request sees all grants that were stored before it, also in batches.
func TestGrantsHoldAtOnce(t *testing.T) {
	cluster := fake.New(t)
	a := started(t, cluster)
	store := &countedReads{Reader: a.store}
	a.store = store
	put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	for i := range 20 {
		user := fmt.Sprintf("user%d", i)
		bind(t, cluster, user, "reader", user)
		d, err := a.Authorize(t.Context(), ask(user))
		if err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v", user, d, err)
		}
		other := fmt.Sprintf("another%d", i)
		bind(t, cluster, other, "reader", other)
		before := store.revisions
		results, err := a.AuthorizeBatch(t.Context(), []services.Attributes{ask("nobody"), ask(other), ask("nobody"), ask(user)})
		if err != nil || results[0].Allowed || !results[1].Allowed || results[2].Allowed || !results[3].Allowed {
			t.Fatalf("%s: %+v, %v", other, results, err)
		}
		if n := store.revisions - before; n != 1 {
			t.Fatalf("%d reads of the newest revision for the denials of a batch", n)
		}
	}
}

// countedReads counts the reads of the newest revision.
type countedReads struct {
	services.Reader
	revisions int
}

func (c *countedReads) Revision(ctx context.Context, of resource.GroupResource) (int64, error) {
	c.revisions++
	return c.Reader.Revision(ctx, of)
}

func TestRevokedGrantsEnd(t *testing.T) {
	cluster := fake.New(t)
	put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	bind(t, cluster, "readers", "reader", "jane")
	a := started(t, cluster)
	cluster.Delete(resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: "clusterrolebindings"}, Name: "readers"})
	for allowed := true; allowed; {
		before := a.current.Load()
		d, err := a.Authorize(t.Context(), ask("jane"))
		if err != nil {
			t.Fatal(err)
		}
		if allowed = d.Allowed; !allowed {
			break
		}
		select {
		case <-before.replaced:
		case <-time.After(10 * time.Second):
			t.Fatal("the grant never ended")
		}
	}
}

// TestDecisionsWait: a decision that must include a revision is made by the policy of that revision, also in a batch. The
// wait is bounded.
func TestDecisionsWait(t *testing.T) {
	cluster := fake.New(t)
	put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	a := started(t, cluster)
	for i := range 20 {
		bind(t, cluster, "readers", "reader", "jane")
		if d, err := a.Authorize(t.Context(), ask("jane")); err != nil || !d.Allowed {
			t.Fatalf("%d: %+v, %v", i, d, err)
		}
		q := ask("jane")
		q.NotBefore = cluster.Delete(resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: "clusterrolebindings"}, Name: "readers"})
		results := []services.AuthzResult{{}}
		var err error
		if i%2 == 0 {
			results[0].Decision, err = a.Authorize(t.Context(), q)
		} else {
			results, err = a.AuthorizeBatch(t.Context(), []services.Attributes{q})
		}
		if d := results[0]; err != nil || d.Err != nil || d.Allowed || d.Revision < q.NotBefore {
			t.Fatalf("%d: the grant ended at %d: %+v, %v", i, q.NotBefore, d, err)
		}
	}
	bind(t, cluster, "readers", "reader", "jane")
	q := ask("jane")
	q.NotBefore = 1 << 60
	if d, err := a.Authorize(t.Context(), q); err != nil || !d.Allowed || d.Revision <= 0 || d.Revision >= q.NotBefore {
		t.Errorf("at a revision that does not come: %+v, %v", d, err)
	}
}

// TestLargeBindingsDelayOnlyTheirNamespace: while large bindings of one namespace wait for the index, a
// revocation in another is complete after one round, and decisions there name its revision.
func TestLargeBindingsDelayOnlyTheirNamespace(t *testing.T) {
	bindings := resource.GroupResource{Group: group, Resource: "rolebindings"}
	cluster := fake.New(t)
	put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	put(t, cluster, "rolebindings", `{metadata: {name: readers, namespace: other}, roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: User, name: jane}]}`)
	a := newRoleBased(sources{changes: cluster.Source(), store: cluster, group: group})
	loops := a.loops()
	for _, loop := range loops[:len(loops)-1] { // the test makes the rounds
		go func() { _ = loop(t.Context()) }()
	}
	mirrors := [](<-chan struct{}){a.roles[0].Ready(), a.roles[1].Ready(), a.bindings[0].Ready(), a.bindings[1].Ready()}
	for _, ready := range mirrors {
		<-ready
	}
	a.renew()
	in := func(namespace, user string) services.Decision {
		q := ask(user)
		q.Namespace = namespace
		return a.decide(a.current.Load(), q)
	}
	if !in("other", "jane").Allowed {
		t.Fatal("not allowed at first")
	}
	const large = 5
	for i := range large {
		subjects := strings.Repeat(",{kind: User, name: user}", 2) + fmt.Sprintf(",{kind: User, name: large%d}", i)
		for k := range roundCost {
			subjects += fmt.Sprintf(",{kind: User, name: u%d}", k)
		}
		put(t, cluster, "rolebindings", fmt.Sprintf(`{metadata: {name: large%d, namespace: large}, roleRef: {kind: ClusterRole, name: reader}, subjects: [%s]}`, i, subjects[1:]))
	}
	removed := cluster.Delete(resource.Key{GroupResource: bindings, Namespace: "other", Name: "readers"})
	for i := range a.roles {
		if a.roles[i].WaitFor(t.Context(), removed) != nil || a.bindings[i].WaitFor(t.Context(), removed) != nil {
			t.Fatal("the mirrors do not follow")
		}
	}
	if more := a.renew(); !more {
		t.Error("all in one round")
	}
	if d := in("other", "jane"); d.Allowed || d.Revision < removed {
		t.Errorf("after one round, at %d: %+v", removed, d)
	}
	if d := in("large", "nobody"); d.Revision >= removed {
		t.Errorf("a decision by a part of the policy names revision %d", d.Revision)
	}
	rounds := 1
	for a.renew() {
		rounds++
	}
	if rounds != large-1 {
		t.Errorf("%d more rounds", rounds)
	}
	if a.backlog.add(a.bindings[1].List("")[0], a.bindings[1].List("")[0]); len(a.backlog.waiting) != 0 {
		t.Error("an equal binding waits")
	}
	for i := range large {
		if d := in("large", fmt.Sprintf("large%d", i)); !d.Allowed || d.Revision < removed {
			t.Errorf("at last: %+v", d)
		}
	}
}

func ask(user string) services.Attributes {
	return services.Attributes{User: services.UserInfo{Name: user}, Verb: "get", Resource: "pods"}
}

// started returns the roles and bindings of a cluster; it ends with the test.
func started(t *testing.T, cluster *fake.Cluster) *roleBased {
	t.Helper()
	a := newRoleBased(sources{changes: cluster.Source(), store: cluster, group: group})
	for _, loop := range a.loops() {
		go func() { _ = loop(t.Context()) }() // they return nil when the test ends
	}
	select {
	case <-a.ready:
	case <-time.After(10 * time.Second):
		t.Fatal("never ready")
	}
	return a
}

func put(t *testing.T, cluster *fake.Cluster, kind, manifest string) {
	t.Helper()
	cluster.Put(t, resource.GroupResource{Group: group, Resource: kind}, manifest)
}

func bind(t *testing.T, cluster *fake.Cluster, name, role, user string) {
	t.Helper()
	put(t, cluster, "clusterrolebindings", fmt.Sprintf(
		`{metadata: {name: %s}, roleRef: {kind: ClusterRole, name: %s}, subjects: [{kind: User, name: %s}]}`, name, role, user))
}

// TestDecisionsNameTheirRevision: the revision of a decision is at or after the last change of
// the policy that it includes, before one that it does not, and follows the changes of other
// types, so that a caller may keep the decision.
func TestDecisionsNameTheirRevision(t *testing.T) {
	cluster := fake.New(t)
	put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	put(t, cluster, "clusterroles", `{metadata: {name: one}, rules: [{apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [patch]}]}`)
	bind(t, cluster, "readers", "reader", "jane")
	bind(t, cluster, "one", "one", "jane")
	a := started(t, cluster)
	reaches := func(what string, revision int64) services.Decision {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; {
			d, err := a.Authorize(t.Context(), ask("jane"))
			if err != nil {
				t.Fatal(err)
			}
			if d.Revision >= revision || !d.Allowed {
				return d
			}
			if time.Now().After(end) {
				t.Fatalf("%s: decided at %d, want %d", what, d.Revision, revision)
			}
		}
	}
	if d := reaches("at first", 1); !d.AnyName {
		t.Error("the decision is for one name")
	}
	named := ask("jane")
	named.Verb, named.Name = "patch", "x"
	if d, err := a.Authorize(t.Context(), named); err != nil || !d.Allowed || d.AnyName {
		t.Errorf("by a rule with names: %+v, %v", d, err)
	}
	cluster.Put(t, resource.GroupResource{Resource: "pods"}, `{metadata: {name: x}}`)
	other := cluster.Put(t, resource.GroupResource{Resource: "pods"}, `{metadata: {name: y}}`)
	reaches("after changes of other types", other)
	removed := cluster.Delete(resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: "clusterrolebindings"}, Name: "readers"})
	if d := reaches("after its binding is gone", removed); d.Allowed {
		t.Errorf("allowed by a binding that is gone: %+v, removed at %d", d, removed)
	}
}
