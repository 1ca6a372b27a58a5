package roleaggregation_test

import (
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/roleaggregation"
	"github.com/portico-platform/portico/services/vocabulary"
)

var roles = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, Kind: "ClusterRole"}

func start(t *testing.T) apitest.Objects {
	t.Helper()
	a := apitest.Start(t, roles)
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	c, err := roleaggregation.New(client, vocabulary.K8s(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { _ = c.Run(t.Context()) })
	t.Cleanup(loops.Wait)
	return a.Objects(t, roles.GroupVersionResource, "")
}

// rules are those of a role that may get the named resources.
func rules(resources ...string) map[string]any {
	var list []any
	for _, r := range resources {
		list = append(list, map[string]any{"apiGroups": []any{""}, "resources": []any{r}, "verbs": []any{"get"}})
	}
	return map[string]any{"rules": list}
}

// part returns the metadata of a role that other roles aggregate.
func part(name string, of ...string) map[string]any {
	to := map[string]any{}
	for _, o := range of {
		to["to-"+o] = "true"
	}
	return map[string]any{"name": name, "labels": to}
}

func aggregating(of ...string) map[string]any {
	var selectors []any
	for _, o := range of {
		selectors = append(selectors, map[string]any{"matchLabels": map[string]any{"to-" + o: "true"}})
	}
	return map[string]any{"aggregationRule": map[string]any{"clusterRoleSelectors": selectors}}
}

// await waits until a role has rules for these resources, in this order.
func await(t *testing.T, in apitest.Objects, name string, want ...string) {
	t.Helper()
	apitest.Eventually(t, name+" has the rules of "+strings.Join(want, ", "), func() bool {
		return reflect.DeepEqual(names(in.Get(name)), want)
	})
}

func names(o *unstructured.Unstructured) (resources []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "rules")
	for _, rule := range list {
		of, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
		resources = append(resources, of...)
	}
	return resources
}

// TestAggregation: the rules follow the roles that are aggregated: by selector, then by name,
// each once, also through other aggregated roles.
func TestAggregation(t *testing.T) {
	in := start(t)
	in.Create(part("b", "all"), rules("pods", "services"))
	in.Create(part("a", "all", "some"), rules("services", "nodes"))
	in.Create(part("other"), rules("secrets"))
	in.Create(map[string]any{"name": "all"}, aggregating("all"))
	in.Create(part("some", "rest"), aggregating("some"))
	in.Create(map[string]any{"name": "through"}, aggregating("rest", "all"))
	await(t, in, "all", "services", "nodes", "pods")
	await(t, in, "some", "services", "nodes")
	await(t, in, "through", "services", "nodes", "pods")

	in.Change("a", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	await(t, in, "all", "pods", "services")
	await(t, in, "some")
	await(t, in, "through", "pods", "services")
	in.Delete("b", metav1.DeletePropagationBackground)
	await(t, in, "all")
	if got := names(in.Get("other")); !reflect.DeepEqual(got, []string{"secrets"}) {
		t.Errorf("a role that aggregates nothing has %q", got)
	}
}

// TestWrittenRules: what somebody writes into an aggregated role is replaced, and reaches no
// role that aggregates it.
func TestWrittenRules(t *testing.T) {
	in := start(t)
	in.Create(part("a", "one"), rules("pods"))
	in.Create(part("one", "two"), aggregating("one"), rules("secrets"))
	in.Create(part("two", "one"), aggregating("two"), rules("nodes")) // a cycle
	await(t, in, "one", "pods")
	await(t, in, "two", "pods")
	in.Change("one", func(o *unstructured.Unstructured) { o.Object["rules"] = rules("secrets")["rules"] })
	await(t, in, "one", "pods")
	await(t, in, "two", "pods")
}
