// Package namespacedefaults puts into every active namespace what its users expect to find:
// one object of a fixed name, made again when it is deleted. Each thing is a
// controller of its own, with the same plumbing. It decides that the object is there
// and, where it says so, what is in it; everything else that others write into it
// stays. It serves the ServiceAccount admission plugin and "Service account secret"
// of the specification, which rely on these objects.
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

// workers is how many namespaces are worked on at a time.
const workers = 5

// Thing is an object that every namespace has.
type Thing struct {
	// Controller is the name of its controller in --controllers.
	Controller string
	Resource   schema.GroupVersionResource
	// Object is as it shall be. Its fields beside the metadata are kept so.
	Object *unstructured.Unstructured
}

// Controller adds one thing to every namespace.
type Controller struct {
	Thing
	client dynamic.NamespaceableResourceInterface
	// namespaces sees all of them, existing the things that are there.
	namespaces, existing cache.SharedIndexInformer
	queue                *worker.Queue[string] // of namespaces
}

// New returns a controller that follows the namespaces; whoever made that informer
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

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	go c.existing.RunWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), c.namespaces.HasSynced, c.existing.HasSynced) {
		c.queue.Run(ctx, workers, c.reconcile)
	}
	return nil
}
