package apitest

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
)

// waitTimeout bounds every wait.
const waitTimeout = 20 * time.Second

// Eventually waits for a condition.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.After(waitTimeout); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", waitTimeout, what)
		case <-ticks.C:
		}
	}
}

// Earlier is a clock that is an hour behind that of the API.
type Earlier struct{ clock.RealClock }

// Now returns the time an hour ago.
func (Earlier) Now() time.Time { return time.Now().Add(-time.Hour) }

// Objects is a test's own client for the objects of a type in a namespace.
type Objects struct {
	t  *testing.T
	in dynamic.ResourceInterface
}

// Objects returns a client for the objects of a type; the namespace is empty for
// cluster-scoped types.
func (a *API) Objects(t *testing.T, resource schema.GroupVersionResource, namespace string) Objects {
	t.Helper()
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	return Objects{t, client.Resource(resource).Namespace(namespace)}
}

// Create creates an object with metadata and, if they are given, further fields.
func (o Objects) Create(metadata map[string]any, fields ...map[string]any) *unstructured.Unstructured {
	o.t.Helper()
	content := map[string]any{"metadata": metadata, "apiVersion": "v1", "kind": "Any"}
	for _, more := range fields {
		for field, value := range more {
			content[field] = value
		}
	}
	made, err := o.in.Create(o.t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	return made
}

// Get returns an object; nil if it does not exist.
func (o Objects) Get(name string) *unstructured.Unstructured {
	o.t.Helper()
	found, err := o.in.Get(o.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		o.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return found
}

// List returns all objects.
func (o Objects) List() []unstructured.Unstructured {
	o.t.Helper()
	list, err := o.in.List(o.t.Context(), metav1.ListOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	return list.Items
}

// Delete deletes an object with a policy.
func (o Objects) Delete(name string, policy metav1.DeletionPropagation) {
	o.t.Helper()
	if err := o.in.Delete(o.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		o.t.Fatal(err)
	}
}

// Release removes all finalizers of an object.
func (o Objects) Release(name string) {
	o.t.Helper()
	o.Change(name, func(found *unstructured.Unstructured) { found.SetFinalizers(nil) })
}

// Change modifies an object and retries on conflicts.
func (o Objects) Change(name string, change func(*unstructured.Unstructured)) {
	o.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found := o.Get(name)
		change(found)
		_, err := o.in.Update(o.t.Context(), found, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// AwaitGone waits until the objects do not exist.
func (o Objects) AwaitGone(names ...string) {
	o.t.Helper()
	for _, name := range names {
		Eventually(o.t, name+" is gone", func() bool { return o.Get(name) == nil })
	}
}
