package resourcequota_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/lifecycle/internal/resourcequota"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/vocabulary"
)

func served(group, version, plural, kind string) apitest.Type {
	return apitest.Type{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, Kind: kind, Namespaced: true}
}

var (
	quotas  = served("", "v1", "resourcequotas", "ResourceQuota")
	pods    = served("", "v1", "pods", "Pod")
	widgets = served("example.com", "v2", "widgets", "Widget")
)

func start(t *testing.T) *apitest.API {
	t.Helper()
	return startAt(t, clock.RealClock{})
}

func startAt(t *testing.T, now clock.PassiveClock) *apitest.API {
	t.Helper()
	a := apitest.Start(t, quotas, pods, widgets)
	names := vocabulary.Platform()
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := inventory.NewMetadataClient(a.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	source, err := inventory.NewSource(a.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	c, err := resourcequota.New(resourcequota.Config{Client: client, Metadata: metadata, Inventory: source,
		Counter: quota.NewCounter(names), Clock: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { _ = c.Run(t.Context()) })
	t.Cleanup(loops.Wait)
	return a
}

// status waits until the status of a quota has these limits and usage.
func status(t *testing.T, in apitest.Objects, name string, hard, used map[string]string) {
	t.Helper()
	same := func(want map[string]string, field string) bool {
		got, _, _ := unstructured.NestedStringMap(in.Get(name).Object, "status", field)
		if len(got) != len(want) {
			return false
		}
		for key, value := range want {
			if got[key] != value {
				return false
			}
		}
		return true
	}
	apitest.Eventually(t, "the quota is counted", func() bool { return same(hard, "hard") && same(used, "used") })
}

func TestCounts(t *testing.T) {
	a := start(t)
	in := func(of apitest.Type) apitest.Objects { return a.Objects(t, of.GroupVersionResource, "here") }
	pod := func(name, cpu string) {
		in(pods).Create(map[string]any{"name": name}, map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}}}})
	}
	pod("a", "1")
	pod("b", "500m")
	in(widgets).Create(map[string]any{"name": "w"})
	a.Objects(t, widgets.GroupVersionResource, "elsewhere").Create(map[string]any{"name": "w"})
	limits := map[string]string{"requests.cpu": "4", "pods": "9", "count/widgets.example.com": "1", "count/gadgets.example.com": "1", "nonsense": "1"}
	hard := map[string]any{}
	for name, value := range limits {
		hard[name] = value
	}
	in(quotas).Create(map[string]any{"name": "q"}, map[string]any{"spec": map[string]any{"hard": hard}})
	in(quotas).Create(map[string]any{"name": "scoped"}, map[string]any{"spec": map[string]any{"hard": map[string]any{"pods": "1"}, "scopes": []any{"BestEffort"}}})
	status(t, in(quotas), "q", limits, map[string]string{"requests.cpu": "1500m", "pods": "2", "count/widgets.example.com": "1"})
	status(t, in(quotas), "scoped", map[string]string{"pods": "1"}, map[string]string{"pods": "0"})

	in(pods).Change("a", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "Succeeded", "status", "phase")
	})
	in(widgets).Delete("w", metav1.DeletePropagationBackground)
	status(t, in(quotas), "q", limits, map[string]string{"requests.cpu": "500m", "pods": "1", "count/widgets.example.com": "0"})

	in(quotas).Change("q", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(o.Object, map[string]any{"pods": "3"}, "spec", "hard")
	})
	status(t, in(quotas), "q", map[string]string{"pods": "3"}, map[string]string{"pods": "1"})
}

// TestLostPods: a pod that is being deleted counts until it must have stopped.
func TestLostPods(t *testing.T) {
	deleted := time.Now()
	now := clocktesting.NewFakePassiveClock(deleted.Add(20 * time.Second))
	a := startAt(t, now)
	in := func(of apitest.Type) apitest.Objects { return a.Objects(t, of.GroupVersionResource, "here") }
	for name, grace := range map[string]int64{"long": 60, "short": 30} {
		in(pods).Create(map[string]any{"name": name, "deletionTimestamp": deleted.UTC().Format(time.RFC3339), "deletionGracePeriodSeconds": grace})
	}
	in(widgets).Create(map[string]any{"name": "w"})
	limits := map[string]string{"pods": "9", "count/pods": "9", "count/widgets.example.com": "9"}
	in(quotas).Create(map[string]any{"name": "q"}, map[string]any{"spec": map[string]any{"hard": map[string]any{"pods": "9", "count/pods": "9", "count/widgets.example.com": "9"}}})
	status(t, in(quotas), "q", limits, map[string]string{"pods": "2", "count/pods": "2", "count/widgets.example.com": "1"})
	now.SetTime(deleted.Add(40 * time.Second))
	in(widgets).Delete("w", metav1.DeletePropagationBackground) // counts again
	status(t, in(quotas), "q", limits, map[string]string{"pods": "1", "count/pods": "2", "count/widgets.example.com": "0"})
}

// TestQuotasAreCounted: quotas count themselves at once, in the order in which they are seen.
func TestQuotasAreCounted(t *testing.T) {
	a := start(t)
	limit := map[string]string{"resourcequotas": "9"}
	spec := map[string]any{"spec": map[string]any{"hard": map[string]any{"resourcequotas": "9"}}}
	for i := range 50 {
		in := a.Objects(t, quotas.GroupVersionResource, fmt.Sprint("space-", i))
		in.Create(map[string]any{"name": "first"}, spec)
		status(t, in, "first", limit, map[string]string{"resourcequotas": "1"})
		in.Create(map[string]any{"name": "second"}, spec)
		status(t, in, "second", limit, map[string]string{"resourcequotas": "2"})
		status(t, in, "first", limit, map[string]string{"resourcequotas": "2"})
		in.Delete("second", metav1.DeletePropagationBackground)
		status(t, in, "first", limit, map[string]string{"resourcequotas": "1"})
	}
}

// TestRefundsAreChecked: usage that falls is counted again, because a refund after a count makes it too low.
func TestRefundsAreChecked(t *testing.T) {
	a := start(t)
	in := func(of apitest.Type) apitest.Objects { return a.Objects(t, of.GroupVersionResource, "here") }
	for _, name := range []string{"a", "b"} {
		in(pods).Create(map[string]any{"name": name})
	}
	in(quotas).Create(map[string]any{"name": "q"}, map[string]any{"spec": map[string]any{"hard": map[string]any{"pods": "9"}}})
	status(t, in(quotas), "q", map[string]string{"pods": "9"}, map[string]string{"pods": "2"})
	in(quotas).Change("q", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "1", "status", "used", "pods")
	})
	status(t, in(quotas), "q", map[string]string{"pods": "9"}, map[string]string{"pods": "2"})
}

// TestChargesStand: usage that admission adds does not cause a recount.
func TestChargesStand(t *testing.T) {
	a := start(t)
	in := a.Objects(t, quotas.GroupVersionResource, "here")
	spec := map[string]any{"spec": map[string]any{"hard": map[string]any{"pods": "9"}}}
	in.Create(map[string]any{"name": "q"}, spec)
	status(t, in, "q", map[string]string{"pods": "9"}, map[string]string{"pods": "0"})
	in.Change("q", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "4", "status", "used", "pods")
	})
	// Once the other namespace has been counted, this one has been seen.
	elsewhere := a.Objects(t, quotas.GroupVersionResource, "elsewhere")
	elsewhere.Create(map[string]any{"name": "q"}, spec)
	status(t, elsewhere, "q", map[string]string{"pods": "9"}, map[string]string{"pods": "0"})
	status(t, in, "q", map[string]string{"pods": "9"}, map[string]string{"pods": "4"})
}
