package namespace

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/services/kit/worker"
)

// reconcile sweeps a deleted namespace once. It removes the finalizer if nothing is
// left, else it retries.
func (c *Controller) reconcile(ctx context.Context, name string) (time.Duration, error) {
	if known, exists, _ := c.Namespaces.GetStore().GetByKey(name); !exists || known.(*unstructured.Unstructured).GetDeletionTimestamp() == nil {
		c.deletions.Forget(name)
		return 0, nil
	}
	ns, err := c.namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (ns.GetDeletionTimestamp() == nil || !c.holds(ns)) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	left := c.deletions.Left(ns, c.Clock.Now()) // a front door may still admit content
	found := c.sweep(ctx, name)
	if ns, err = c.report(ctx, ns, found); err != nil {
		return 0, worker.IgnoreRace(err)
	}
	if err := found.err(); err != nil {
		return 0, err
	}
	if len(found.remaining) > 0 {
		return 0, worker.ErrLater
	}
	if left > 0 {
		return left, nil
	}
	return 0, c.finalize(ctx, ns)
}

// holds reports whether the namespace waits for its contents to be deleted.
func (c *Controller) holds(ns *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedStringSlice(ns.Object, "spec", "finalizers")
	return slices.Contains(finalizers, c.Finalizer)
}

// finalize removes the controller's finalizer. The API deletes the namespace when no
// finalizers are left.
func (c *Controller) finalize(ctx context.Context, ns *unstructured.Unstructured) error {
	finalizers, _, _ := unstructured.NestedStringSlice(ns.Object, "spec", "finalizers")
	kept := slices.DeleteFunc(finalizers, func(f string) bool { return f == c.Finalizer })
	if err := unstructured.SetNestedStringSlice(ns.Object, kept, "spec", "finalizers"); err != nil {
		return err
	}
	_, err := c.namespaces.Update(ctx, ns, metav1.UpdateOptions{}, "finalize")
	if err == nil {
		c.Log.Info("finalized an empty namespace", "namespace", ns.GetName())
	}
	return worker.IgnoreRace(err)
}

// err joins the errors that kept contents from being read or deleted.
func (f findings) err() error { return errors.Join(append(slices.Clone(f.failures), f.discovery)...) }
