package authz

import (
	"fmt"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/contracttest/fake"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

const group = "rbac.example"

func TestContract(t *testing.T) {
	open := func(t *testing.T) services.Authz {
		cluster := fake.New(t)
		put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
		bind(t, cluster, "readers", "reader", "jane")
		return started(t, cluster)
	}
	jane := services.UserInfo{Name: "jane"}
	ask := services.Attributes{User: jane, Verb: "get", Resource: "pods", Namespace: "a", Name: "x"}
	refused := ask
	refused.Verb = "delete"
	contracttest.BothWays(t, rpc.Authz, open, func(t *testing.T, open func(*testing.T) services.Authz) {
		contracttest.Authz(t, open, contracttest.AuthzExample{
			Allowed: ask, Refused: refused, Rules: services.RulesRequest{User: jane, Namespace: "a"},
		})
	})
}

func TestBindingsTakeEffectAndEnd(t *testing.T) {
	cluster := fake.New(t)
	a := started(t, cluster)
	ask := services.Attributes{User: services.UserInfo{Name: "jane"}, Verb: "get", Resource: "pods"}
	expect := func(allowed bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			d, err := a.Authorize(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed == allowed {
				return
			}
		}
		t.Fatalf("allowed never became %v", allowed)
	}
	expect(false)
	bind(t, cluster, "readers", "reader", "jane")
	put(t, cluster, "clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	expect(true)
	cluster.Delete(resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: "clusterrolebindings"}, Name: "readers"})
	expect(false)
}

// started returns an authorizer of a cluster; it ends with the test.
func started(t *testing.T, cluster *fake.Cluster) *authorizer {
	t.Helper()
	a := newAuthorizer(sources{changes: cluster.Source(), store: cluster, group: group})
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
