package namespacedefaults

import (
	"context"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/services/kit/worker"
)

// reconcile creates the object in a namespace, or corrects it.
func (c *Controller) reconcile(ctx context.Context, namespace string) (time.Duration, error) {
	ns, exists, err := c.namespaces.GetStore().GetByKey(namespace)
	if err != nil || !exists || ns.(*unstructured.Unstructured).GetDeletionTimestamp() != nil {
		return 0, err
	}
	found, exists, err := c.existing.GetStore().GetByKey(namespace + "/" + c.Object.GetName())
	switch {
	case err != nil:
		return 0, err
	case !exists:
		_, err = c.client.Namespace(namespace).Create(ctx, c.Object, metav1.CreateOptions{})
	case found.(*unstructured.Unstructured).GetDeletionTimestamp() == nil:
		err = c.correct(ctx, namespace, found.(*unstructured.Unstructured))
	}
	return 0, worker.IgnoreRace(err)
}

// correct resets the managed fields of the object that differ.
func (c *Controller) correct(ctx context.Context, namespace string, found *unstructured.Unstructured) error {
	corrected := found.DeepCopy()
	for field, want := range c.Object.Object {
		if field != "metadata" {
			corrected.Object[field] = want
		}
	}
	if reflect.DeepEqual(corrected.Object, found.Object) {
		return nil
	}
	_, err := c.client.Namespace(namespace).Update(ctx, corrected, metav1.UpdateOptions{})
	return err
}
