// Package inuse removes the finalizers that admission has added from deleted volumes,
// claims and classes of their attributes that are no longer in use. A claim is in use by
// every pod that mounts it, has a node and has not finished; a volume by the claim that it
// is bound to; a class by every volume and claim that names it. It deletes nothing. It serves StorageObjectInUseProtection under "Admission plugins", and
// "Two-phase deletion of a resource", of the specification.
package inuse

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

// workers is how many objects are reconciled concurrently.
const workers = 5

// Kind is a kind of protected object.
type Kind struct {
	// Controller is the name of its controller in --controllers.
	Controller string
	Resource   schema.GroupVersionResource
	Finalizer  string
	// used reports whether an object is in use.
	used func(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) (bool, error)
}

// Claims are used by pods.
func Claims(v vocabulary.Vocabulary) Kind {
	return Kind{"pvc-protection", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, v.ClaimFinalizer(), mounted}
}

// Volumes are used by claims.
func Volumes(v vocabulary.Vocabulary) Kind {
	return Kind{"pv-protection", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, v.VolumeFinalizer(), bound}
}

// AttributesClasses are used by volumes and claims. Release 1.36 serves them.
func AttributesClasses(v vocabulary.Vocabulary) Kind {
	return Kind{"volumeattributesclass-protection-controller", schema.GroupVersionResource{Group: v.Group("storage."), Version: "v1", Resource: "volumeattributesclasses"},
		v.AttributesClassFinalizer(), named}
}

// Controller releases objects of one kind.
type Controller struct {
	Kind
	client dynamic.Interface
	seen   cache.SharedIndexInformer
	queue  *worker.Queue[cache.ObjectName]
}

// New returns a controller. It follows nothing before it runs.
func New(kind Kind, client dynamic.Interface, log *slog.Logger) (*Controller, error) {
	c := &Controller{Kind: kind, client: client, seen: worker.NewInformer(client.Resource(kind.Resource), ""),
		queue: worker.NewQueue[cache.ObjectName](kind.Controller, log)}
	return c, c.queue.Follow(c.seen, func(o *unstructured.Unstructured) cache.ObjectName {
		return cache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}
	})
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	go c.seen.RunWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), c.seen.HasSynced) {
		c.queue.Run(ctx, workers, c.reconcile)
	}
	return nil
}
