// Package namespacedefaults ensures that every active namespace has its default objects:
// objects with fixed names, which are recreated when they are deleted. Each of them has a
// controller. The fields in the desired object are enforced, others are kept. It serves
// the ServiceAccount admission plugin and "Service account secret" of the specification,
// which rely on these objects.
package namespacedefaults

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
)

// workers is how many namespaces are reconciled concurrently.
const workers = 5

// Thing is an object that every namespace has.
type Thing struct {
	// Controller is the name of its controller in --controllers.
	Controller string
	Resource   schema.GroupVersionResource
	// Object is the desired object. Its fields besides the metadata are enforced.
	Object *unstructured.Unstructured
}

// Controller ensures one thing in every namespace.
type Controller struct {
	Thing
	client dynamic.NamespaceableResourceInterface
	// namespaces is an informer of all namespaces, existing one of the current objects.
	namespaces, existing cache.SharedIndexInformer
	queue                *worker.Queue[string] // of namespaces
}

// New returns a controller that follows the namespaces. The creator of that informer
// runs it.
func New(thing Thing, client dynamic.Interface, namespaces cache.SharedIndexInformer, log *slog.Logger) (*Controller, error) {
	in := client.Resource(thing.Resource)
	c := &Controller{
		Thing: thing, client: in, namespaces: namespaces, existing: worker.NewInformer(in, "metadata.name="+thing.Object.GetName()),
		queue: worker.NewQueue[string](thing.Controller, log),
	}
	if err := c.queue.Follow(namespaces, (*unstructured.Unstructured).GetName); err != nil {
		return nil, err
	}
	return c, c.queue.Follow(c.existing, (*unstructured.Unstructured).GetNamespace)
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	go c.existing.RunWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), c.namespaces.HasSynced, c.existing.HasSynced) {
		c.queue.Run(ctx, workers, c.reconcile)
	}
	return nil
}
