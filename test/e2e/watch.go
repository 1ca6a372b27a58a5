package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// patience bounds every wait for something that has to happen.
const patience = 30 * time.Second

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, patience, what, holds)
}

func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.After(limit); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", limit, what)
		case <-ticks.C:
		}
	}
}

// next returns a short form of the next n events.
func next(t *testing.T, w watch.Interface, n int) (events []string) {
	t.Helper()
	deadline := time.After(patience)
	for len(events) < n {
		select {
		case e, open := <-w.ResultChan():
			o, ok := e.Object.(*unstructured.Unstructured)
			if !open || !ok {
				t.Fatalf("the watch ended (%v) after %q: %v", e.Type, events, e.Object)
			}
			events = append(events, fmt.Sprintf("%s %s %s", e.Type, o.GetName(), value(o)))
		case <-deadline:
			t.Fatalf("after %v there are only %q of %d events", patience, events, n)
		}
	}
	return events
}

// watchChanges follows a collection from a list on, while others change it.
func watchChanges(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	in := client.Resource(configMaps()).Namespace(newNamespace(t, client))
	list, err := in.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := in.Watch(t.Context(), metav1.ListOptions{LabelSelector: ours, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	made, err := in.Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(made.Object, "2", "data", "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := in.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"ADDED a 1", "MODIFIED a 2", "DELETED a 2"}
	if got := next(t, w, len(want)); !slices.Equal(got, want) {
		t.Errorf("live: got %q, want %q", got, want)
	}
	again, err := in.Watch(t.Context(), metav1.ListOptions{LabelSelector: ours, ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	if got := next(t, again, 2); !slices.Equal(got, want[1:]) {
		t.Errorf("resumed after the create: got %q, want %q", got, want[1:])
	}
}

// watchFromTheStart watches without a resourceVersion: existing objects are sent first.
func watchFromTheStart(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	in := client.Resource(configMaps()).Namespace(newNamespace(t, client))
	for _, name := range []string{"a", "b"} {
		if _, err := in.Create(t.Context(), configMap(name, "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := in.Watch(t.Context(), metav1.ListOptions{LabelSelector: ours})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	got := next(t, w, 2)
	if _, err := in.Create(t.Context(), configMap("c", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got = append(got, next(t, w, 1)...)
	if want := []string{"ADDED a 1", "ADDED b 1", "ADDED c 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
