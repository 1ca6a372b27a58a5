package customresources_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/customresources"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	names       = vocabulary.Platform()
	definitions = schema.GroupVersionResource{Group: names.Group("apiextensions."), Version: "v1", Resource: "customresourcedefinitions"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// start starts an API with a controller, and returns a client of it.
func start(t *testing.T) dynamic.Interface {
	t.Helper()
	api := apitest.Start(t, apitest.Type{GroupVersionResource: definitions, Kind: "CustomResourceDefinition"},
		apitest.Type{GroupVersionResource: widgets, Kind: "Widget", Namespaced: true})
	client, err := dynamic.NewForConfig(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	c, err := customresources.New(customresources.Config{Client: client, Metadata: client, Vocabulary: names, Clock: apitest.Earlier{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return client
}

// define creates a definition for a plural in example.com.
func define(t *testing.T, client dynamic.Interface, plural string, conditions ...any) {
	t.Helper()
	create(t, client.Resource(definitions), map[string]any{
		"metadata": map[string]any{"name": plural + ".example.com", "finalizers": []any{names.DefinitionFinalizer()}},
		"spec": map[string]any{"group": "example.com", "names": map[string]any{"plural": plural},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}}},
		"status": map[string]any{"conditions": conditions, "acceptedNames": map[string]any{"plural": plural}},
	})
}

func condition(kind, status string) any { return map[string]any{"type": kind, "status": status} }

func create(t *testing.T, in dynamic.ResourceInterface, object map[string]any) {
	t.Helper()
	object["apiVersion"], object["kind"] = "v1", "Any"
	if _, err := in.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitFor watches a resource until the condition holds for an object, which is nil if it is
// deleted.
func waitFor(t *testing.T, in dynamic.ResourceInterface, name string, condition func(*unstructured.Unstructured) bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	now, err := in.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		now, err = nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if condition(now) {
		return
	}
	events, err := in.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: now.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		now, _ := event.Object.(*unstructured.Unstructured)
		if event.Type == "DELETED" {
			now = nil
		}
		if condition(now) {
			return
		}
	}
	t.Fatalf("%s did not meet the condition", name)
}

func gone(o *unstructured.Unstructured) bool { return o == nil }

func TestObjectsOfADeletedDefinitionGoFirst(t *testing.T) {
	client := start(t)
	define(t, client, "widgets", condition("Established", "True"))
	for _, namespace := range []string{"a", "b"} {
		create(t, client.Resource(widgets).Namespace(namespace), map[string]any{"metadata": map[string]any{"name": "x"}})
	}
	held := map[string]any{"name": "held", "finalizers": []any{"example.com/hold"}}
	create(t, client.Resource(widgets).Namespace("b"), map[string]any{"metadata": held})
	if err := client.Resource(definitions).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	inB := client.Resource(widgets).Namespace("b")
	waitFor(t, inB, "held", func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
	if _, err := client.Resource(definitions).Get(t.Context(), "widgets.example.com", metav1.GetOptions{}); err != nil {
		t.Fatal("the definition went before its objects:", err)
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := inB.Patch(t.Context(), "held", types.MergePatchType, release, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client.Resource(definitions), "widgets.example.com", gone)
	if left, err := client.Resource(widgets).List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Error("objects are left", err)
	}
}

// The names of a definition that were not accepted belong to another type.
func TestNothingOfOthersIsDeleted(t *testing.T) {
	for name, status := range map[string]map[string]any{
		"not accepted": {"acceptedNames": map[string]any{"plural": "", "kind": ""},
			"conditions": []any{condition("NamesAccepted", "False"), condition("Established", "True")}},
		"not established": {"acceptedNames": map[string]any{"plural": "widgets"},
			"conditions": []any{condition("NamesAccepted", "False"), condition("Established", "False")}},
		"other names": {"acceptedNames": map[string]any{"plural": "widgets"}, "conditions": []any{condition("Established", "True")}},
	} {
		t.Run(name, func(t *testing.T) {
			client := start(t)
			plural := "widgets"
			if name == "other names" {
				plural = "gadgets"
			}
			create(t, client.Resource(widgets).Namespace("a"), map[string]any{"metadata": map[string]any{"name": "x"}})
			create(t, client.Resource(definitions), map[string]any{
				"metadata": map[string]any{"name": plural + ".example.com", "finalizers": []any{names.DefinitionFinalizer()}},
				"spec": map[string]any{"group": "example.com", "names": map[string]any{"plural": plural},
					"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}}},
				"status": status,
			})
			if err := client.Resource(definitions).Delete(t.Context(), plural+".example.com", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, client.Resource(definitions), plural+".example.com", gone)
			if _, err := client.Resource(widgets).Namespace("a").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
				t.Error("an object of another type:", err)
			}
		})
	}
}

func TestADefinitionWithoutObjectsGoes(t *testing.T) {
	client := start(t)
	define(t, client, "gadgets", condition("Established", "False"))
	if err := client.Resource(definitions).Delete(t.Context(), "gadgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client.Resource(definitions), "gadgets.example.com", gone)
}

// TestNamesThatAreFreeAreOffered: a definition whose names were not accepted is stored again after another
// one that has them is deleted or gives them up, and until they are accepted; not while they are taken.
func TestNamesThatAreFreeAreOffered(t *testing.T) {
	for name, giveUp := range map[string]func(in dynamic.ResourceInterface) error{
		"deleted": func(in dynamic.ResourceInterface) error {
			return in.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{})
		},
		"renamed": func(in dynamic.ResourceInterface) error {
			_, err := in.Patch(t.Context(), "widgets.example.com", types.MergePatchType, []byte(`{"status":{"acceptedNames":{"shortNames":["yy"]}}}`), metav1.PatchOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := start(t)
			in := client.Resource(definitions)
			for _, plural := range []string{"widgets", "rivals"} {
				accepted, status := map[string]any{"plural": plural}, "False"
				if plural == "widgets" {
					accepted, status = map[string]any{"plural": plural, "shortNames": []any{"zz"}}, "True"
				}
				create(t, in, map[string]any{
					"metadata": map[string]any{"name": plural + ".example.com", "annotations": map[string]any{}},
					"spec":     map[string]any{"group": "example.com", "names": map[string]any{"plural": plural, "shortNames": []any{"zz"}}},
					"status":   map[string]any{"acceptedNames": accepted, "conditions": []any{condition("NamesAccepted", status)}},
				})
			}
			before, err := in.Get(t.Context(), "rivals.example.com", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			// A marker that is created later and stored again shows that the waiting one has been passed over.
			define(t, client, "marker", condition("NamesAccepted", "False"))
			marker, err := in.Get(t.Context(), "marker.example.com", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, in, "marker.example.com", func(o *unstructured.Unstructured) bool { return o.GetResourceVersion() != marker.GetResourceVersion() })
			now, err := in.Get(t.Context(), "rivals.example.com", metav1.GetOptions{})
			if err != nil || now.GetResourceVersion() != before.GetResourceVersion() {
				t.Fatal("names that are taken are offered", err)
			}
			if err := giveUp(in); err != nil {
				t.Fatal(err)
			}
			// The first writes do not help, as if the front door had not seen the change.
			writes, last := 0, before.GetResourceVersion()
			waitFor(t, in, "rivals.example.com", func(o *unstructured.Unstructured) bool {
				if o.GetResourceVersion() != last {
					writes, last = writes+1, o.GetResourceVersion()
				}
				return writes == 3
			})
		})
	}
}
