package garbagecollector_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/garbagecollector"
	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan

	hold = "example.com/hold"
)

var (
	things  = namespaced("", "things", "Thing")
	widgets = namespaced("example.com", "widgets", "Widget")
	events  = namespaced("", "events", "Event")
	nodes   = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Kind: "Node"}
	crds    = apitest.Type{Kind: "CustomResourceDefinition", GroupVersionResource: schema.GroupVersionResource{
		Group: vocabulary.Platform().Group("apiextensions."), Version: "v1", Resource: "customresourcedefinitions"}}
)

func namespaced(group, resource, kind string) apitest.Type {
	return apitest.Type{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Kind: kind, Namespaced: true}
}

// world is an API with the controller running.
type world struct {
	*apitest.API
	t      *testing.T
	things apitest.Objects
}

func start(t *testing.T, refuse func(*http.Request) int) world {
	t.Helper()
	return startWith(t, clock.RealClock{}, refuse)
}

func startWith(t *testing.T, now clock.Clock, refuse func(*http.Request) int) world {
	t.Helper()
	a := apitest.Start(t, things, nodes, events, crds)
	a.Refuse = refuse
	names := vocabulary.Platform()
	metadata, err := inventory.NewMetadataClient(a.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	source, err := inventory.NewSource(a.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	c := garbagecollector.New(garbagecollector.Config{Metadata: metadata, Inventory: source, Vocabulary: names,
		Clock: now, Log: slog.New(slog.DiscardHandler)})
	var loops sync.WaitGroup
	loops.Go(func() { _ = c.Run(t.Context()) })
	t.Cleanup(loops.Wait)
	return world{a, t, a.Objects(t, things.GroupVersionResource, "here")}
}

// object returns metadata of an object with owners, which wait for it.
func object(name string, owners ...*unstructured.Unstructured) map[string]any {
	var references []any
	for _, owner := range owners {
		references = append(references, map[string]any{"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(),
			"name": owner.GetName(), "uid": string(owner.GetUID()), "blockOwnerDeletion": true})
	}
	return map[string]any{"name": name, "ownerReferences": references}
}

// held returns metadata with a finalizer that no controller removes.
func held(metadata map[string]any) map[string]any {
	metadata["finalizers"] = []any{hold}
	return metadata
}

// impostor is an owner with another uid.
func impostor(o *unstructured.Unstructured) *unstructured.Unstructured {
	other := o.DeepCopy()
	other.SetUID("00000000-0000-4000-8000-000000000000")
	return other
}

func (w world) awaitDeleting(name string) {
	w.t.Helper()
	apitest.Eventually(w.t, name+" is deleted", func() bool { return w.things.Get(name).GetDeletionTimestamp() != nil })
}

func TestBackground(t *testing.T) {
	w := start(t, nil)
	mother, father := w.things.Create(object("mother")), w.things.Create(object("father"))
	child := w.things.Create(object("child", mother, father))
	w.things.Create(object("grandchild", child))
	w.things.Delete("mother", background)
	apitest.Eventually(t, "the child has one owner", func() bool {
		owners := w.things.Get("child").GetOwnerReferences()
		return len(owners) == 1 && owners[0].UID == father.GetUID()
	})
	w.things.Delete("father", background)
	w.things.AwaitGone("child", "grandchild")
}

func TestForeground(t *testing.T) {
	w := start(t, nil)
	parent := w.things.Create(object("parent"))
	child := w.things.Create(object("child", parent))
	w.things.Create(held(object("grandchild", child)))
	w.things.Delete("parent", foreground)
	w.awaitDeleting("grandchild")
	w.awaitDeleting("child")
	if w.things.Get("parent") == nil {
		t.Error("the parent did not wait")
	}
	w.things.Release("grandchild")
	w.things.AwaitGone("grandchild", "child", "parent")
}

// TestForegroundWithoutBlocking has a dependent that the owner need not wait for.
func TestForegroundWithoutBlocking(t *testing.T) {
	w := start(t, nil)
	parent := w.things.Create(object("parent"))
	w.things.Create(held(object("child", parent)))
	w.things.Delete("parent", foreground)
	w.awaitDeleting("child")
	w.things.Change("child", func(o *unstructured.Unstructured) {
		owners := o.GetOwnerReferences()
		owners[0].BlockOwnerDeletion = nil
		o.SetOwnerReferences(owners)
	})
	w.things.AwaitGone("parent")
	w.things.Release("child")
	w.things.AwaitGone("child")
}

// TestDeletionsAreInTheFuture: deletions with finalizers are completed although the API's clock is
// ahead, or the object may take long to stop, as pods do.
func TestDeletionsAreInTheFuture(t *testing.T) {
	for name, x := range map[string]struct {
		now   clock.Clock
		grace time.Duration
	}{"a clock behind": {apitest.Earlier{}, 0}, "a period of grace": {clock.RealClock{}, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			w := startWith(t, x.now, nil)
			for policy, finalizer := range map[metav1.DeletionPropagation]string{foreground: metav1.FinalizerDeleteDependents, orphan: metav1.FinalizerOrphanDependents} {
				parent := w.things.Create(object(string(policy)))
				w.things.Create(object("child", parent))
				w.things.Change(parent.GetName(), func(o *unstructured.Unstructured) {
					ends := metav1.NewTime(time.Now().Add(x.grace))
					o.SetDeletionTimestamp(&ends)
					o.SetFinalizers([]string{finalizer})
				})
				w.things.AwaitGone(parent.GetName())
				if policy == orphan {
					w.things.Delete("child", background)
				}
				w.things.AwaitGone("child")
			}
		})
	}
}

// TestCircle has two objects that own each other, and one that owns both.
func TestCircle(t *testing.T) {
	w := start(t, nil)
	parent := w.things.Create(object("parent"))
	one := w.things.Create(object("one", parent))
	two := w.things.Create(object("two", one))
	w.things.Change("one", func(o *unstructured.Unstructured) {
		o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: two.GetKind(), Name: "two", UID: two.GetUID()}))
	})
	w.things.Delete("parent", foreground)
	w.things.Delete("one", foreground)
	w.things.AwaitGone("parent", "one", "two")
}

func TestOrphan(t *testing.T) {
	w := start(t, nil)
	parent := w.things.Create(object("parent"))
	for _, name := range []string{"a", "b", "c"} {
		w.things.Create(object(name, parent))
	}
	w.things.Delete("parent", orphan)
	w.things.AwaitGone("parent")
	for _, name := range []string{"a", "b", "c"} {
		if o := w.things.Get(name); o == nil || len(o.GetOwnerReferences()) > 0 {
			t.Errorf("orphan %s: %v", name, o)
		}
	}
}

func TestAbsentOwner(t *testing.T) {
	w := start(t, nil)
	parent := w.things.Create(object("parent"))
	w.things.Create(object("deceived", impostor(parent)))
	w.things.Create(object("both", parent, impostor(parent)))
	w.things.AwaitGone("deceived")
	apitest.Eventually(t, "the wrong reference is gone", func() bool {
		owners := w.things.Get("both").GetOwnerReferences()
		return len(owners) == 1 && owners[0].UID == parent.GetUID()
	})
}

// TestOtherNamespace has owners in invalid places: a dependent in another namespace is
// deleted, a cluster-scoped one is kept, and both get an event.
func TestOtherNamespace(t *testing.T) {
	w := start(t, nil)
	owner := w.things.Create(object("owner"))
	elsewhere := w.Objects(t, things.GroupVersionResource, "elsewhere")
	elsewhere.Create(object("dependent", owner))
	wide := w.Objects(t, nodes.GroupVersionResource, "")
	wide.Create(object("dependent", owner))
	elsewhere.AwaitGone("dependent")
	for _, namespace := range []string{"elsewhere", "default"} {
		in := w.Objects(t, events.GroupVersionResource, namespace)
		apitest.Eventually(t, "an event in "+namespace, func() bool {
			list := in.List()
			return len(list) == 1 && list[0].Object["reason"] == "OwnerRefInvalidNamespace"
		})
	}
	if wide.Get("dependent") == nil {
		t.Error("a cluster-scoped object was deleted because of a namespaced owner")
	}
	node := wide.Create(object("node"))
	w.things.Create(object("of-node", node))
	wide.Delete("node", background)
	w.things.AwaitGone("of-node")
}

// TestTypesComeAndGo serves a type only for a while: dependents of its objects are kept
// while the state of their owners is unknown.
func TestTypesComeAndGo(t *testing.T) {
	w := start(t, nil)
	owner := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	owner.SetName("widget")
	owner.SetUID("00000000-0000-4000-8000-000000000000")
	w.things.Create(object("of-nobody", owner))

	w.Serve(widgets)
	custom := w.Objects(t, widgets.GroupVersionResource, "here")
	real := custom.Create(object("real"))
	w.things.Create(object("child", real))
	definitions := w.Objects(t, crds.GroupVersionResource, "")
	definitions.Create(object("widgets.example.com"))
	w.things.AwaitGone("of-nobody") // only now it is confirmed

	w.Withdraw(widgets.GroupVersionResource)
	definitions.Delete("widgets.example.com", background)
	w.things.Create(object("late", real))
	w.things.Create(object("deceived", impostor(w.things.Create(object("thing")))))
	w.things.AwaitGone("deceived")
	for _, name := range []string{"child", "late"} {
		if w.things.Get(name) == nil {
			t.Errorf("%s was deleted although the state of its owner is unknown", name)
		}
	}

	w.Serve(widgets)
	definitions.Create(object("widgets.example.com"))
	custom.Delete("real", background)
	w.things.AwaitGone("child", "late")
}

// TestFailures: while the API fails to return an owner, nothing is deleted.
func TestFailures(t *testing.T) {
	var broken, requested atomic.Bool
	broken.Store(true)
	w := start(t, func(r *http.Request) int {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/lost") && broken.Load() {
			requested.Store(true)
			return http.StatusInternalServerError
		}
		return 0
	})
	lost := impostor(w.things.Create(object("parent")))
	lost.SetName("lost")
	w.things.Create(object("child", lost))
	apitest.Eventually(t, "the owner is read", requested.Load)
	if w.things.Get("child") == nil {
		t.Error("deleted while the state of its owner is unknown")
	}
	broken.Store(false)
	w.things.AwaitGone("child")
}

// TestOwnersAreListedLast: an owner that is deleted before the objects of its type are known is
// missed: its dependent has looked for it before.
func TestOwnersAreListedLast(t *testing.T) {
	var listed atomic.Bool
	var reads atomic.Int32
	w := start(t, func(r *http.Request) int {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes") && !listed.Load() {
			return http.StatusInternalServerError
		}
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes/owner") {
			reads.Add(1)
		}
		return 0
	})
	wide := w.Objects(t, nodes.GroupVersionResource, "")
	w.things.Create(object("child", wide.Create(object("owner"))))
	apitest.Eventually(t, "the owner is looked for again", func() bool { return reads.Load() > 1 })
	wide.Delete("owner", background)
	listed.Store(true)
	w.things.AwaitGone("child")
}

// jumping is a clock that a test moves on, in seconds.
type jumping struct {
	clock.RealClock
	by *atomic.Int64
}

func (j jumping) Now() time.Time { return time.Now().Add(time.Duration(j.by.Load()) * time.Second) }

func (j jumping) Since(t time.Time) time.Duration { return j.Now().Sub(t) }

// TestTypeThatCannotBeListed: deletions with finalizers wait for the objects of a type, but not for
// ever.
func TestTypeThatCannotBeListed(t *testing.T) {
	var refused, by atomic.Int64
	w := startWith(t, jumping{by: &by}, func(r *http.Request) int {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes") {
			refused.Add(1)
			return http.StatusInternalServerError
		}
		return 0
	})
	for name, policy := range map[string]metav1.DeletionPropagation{"foreground": foreground, "orphan": orphan} {
		w.things.Create(object(name+"-child", w.things.Create(object(name))))
		w.things.Delete(name, policy)
	}
	w.things.AwaitGone("foreground-child")
	apitest.Eventually(t, "the list is refused", func() bool { return refused.Load() > 0 })
	for _, name := range []string{"foreground", "orphan"} {
		if w.things.Get(name) == nil {
			t.Errorf("%s did not wait", name)
		}
	}
	by.Store(30)
	w.things.AwaitGone("foreground", "orphan")
	if o := w.things.Get("orphan-child"); o == nil || len(o.GetOwnerReferences()) > 0 {
		t.Errorf("the orphan: %v", o)
	}
}
