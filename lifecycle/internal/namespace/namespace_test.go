package namespace_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/lifecycle/internal/namespace"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	namespaces = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
	pods       = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}
	configMaps = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	widgets    = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true}
)

// world is an API with one namespace and the controller running.
type world struct {
	*apitest.API
	t          *testing.T
	namespaces apitest.Objects
}

// start starts the controller. Refuse may be nil.
func start(t *testing.T, refuse func(*http.Request) int, types ...apitest.Type) world {
	t.Helper()
	a := apitest.Start(t, append(types, namespaces)...)
	a.Refuse = refuse
	w := world{a, t, a.Objects(t, namespaces.GroupVersionResource, "")}
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	names := vocabulary.Platform()
	metadata, err := inventory.NewMetadataClient(a.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	source, err := inventory.NewSource(a.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	informer := worker.NewInformer(client.Resource(namespaces.GroupVersionResource), "")
	c, err := namespace.New(namespace.Config{Client: client, Metadata: metadata, Inventory: source, Namespaces: informer,
		Finalizer: names.NamespaceFinalizer, Clock: apitest.Earlier{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { informer.RunWithContext(t.Context()) })
	loops.Go(func() { _ = c.Run(t.Context()) })
	t.Cleanup(loops.Wait)
	w.namespaces.Create(map[string]any{"name": "here"}, map[string]any{"spec": map[string]any{"finalizers": []any{names.NamespaceFinalizer, "another"}}})
	return w
}

func (w world) in(t apitest.Type) apitest.Objects {
	return w.Objects(w.t, t.GroupVersionResource, "here")
}

func (w world) delete() { w.namespaces.Delete("here", metav1.DeletePropagationBackground) }

// await waits until a condition of the namespace is true and its message contains the
// words.
func (w world) await(kind string, words ...string) {
	w.t.Helper()
	apitest.Eventually(w.t, kind, func() bool {
		conditions, _, _ := unstructured.NestedSlice(w.namespaces.Get("here").Object, "status", "conditions")
		for _, each := range conditions {
			c, _ := each.(map[string]any)
			message, _ := c["message"].(string)
			if c["type"] != kind || c["status"] != "True" {
				continue
			}
			for _, word := range words {
				if !strings.Contains(message, word) {
					return false
				}
			}
			return true
		}
		return false
	})
}

// awaitFinalized waits until the controller has removed its finalizer, and then removes
// the other one.
func (w world) awaitFinalized() {
	w.t.Helper()
	apitest.Eventually(w.t, "the namespace is finalized", func() bool {
		held, _, _ := unstructured.NestedStringSlice(w.namespaces.Get("here").Object, "spec", "finalizers")
		return len(held) == 1 && held[0] == "another"
	})
}

func TestContentsAreDeleted(t *testing.T) {
	w := start(t, nil, configMaps, widgets)
	for _, name := range []string{"a", "b", "c"} {
		w.in(configMaps).Create(map[string]any{"name": name})
		w.in(widgets).Create(map[string]any{"name": name})
	}
	elsewhere := w.Objects(t, configMaps.GroupVersionResource, "elsewhere")
	elsewhere.Create(map[string]any{"name": "a"})
	w.delete()
	w.awaitFinalized()
	if left := len(w.in(configMaps).List()) + len(w.in(widgets).List()); left > 0 {
		t.Errorf("%d objects are left", left)
	}
	if elsewhere.Get("a") == nil {
		t.Error("an object of another namespace was deleted")
	}
}

func TestHeldContent(t *testing.T) {
	w := start(t, nil, widgets)
	w.in(widgets).Create(map[string]any{"name": "held", "finalizers": []any{"example.com/hold"}})
	w.delete()
	w.await("NamespaceFinalizersRemaining", "example.com/hold: 1")
	w.await("NamespaceContentRemaining", "widgets.example.com: 1")
	w.in(widgets).Release("held")
	w.awaitFinalized()
}

func TestPodsGoFirst(t *testing.T) {
	w := start(t, nil, pods, configMaps)
	w.in(pods).Create(map[string]any{"name": "held", "finalizers": []any{"example.com/hold"}})
	w.in(configMaps).Create(map[string]any{"name": "a"})
	w.delete()
	w.await("NamespaceContentRemaining", "pods: 1")
	if w.in(configMaps).Get("a") == nil {
		t.Error("the ConfigMap was deleted before the pod")
	}
	w.in(pods).Release("held")
	w.awaitFinalized()
}

func TestUncertainDiscovery(t *testing.T) {
	stale := widgets
	stale.Stale = true
	w := start(t, nil, configMaps, stale)
	w.in(configMaps).Create(map[string]any{"name": "a"})
	w.delete()
	w.await("NamespaceDeletionDiscoveryFailure", "example.com/v1")
	w.in(configMaps).AwaitGone("a")
	w.Serve(widgets)
	w.awaitFinalized()
}

func TestFailures(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	w := start(t, func(r *http.Request) int {
		if broken.Load() && r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/widgets") {
			return http.StatusInternalServerError
		}
		return 0
	}, widgets)
	w.in(widgets).Create(map[string]any{"name": "a"})
	w.delete()
	w.await("NamespaceDeletionContentFailure", "widgets")
	broken.Store(false)
	w.awaitFinalized()
}
