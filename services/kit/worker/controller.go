package worker

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Controller reconciles every object when it is added, when it changes and after the delay
// that Reconcile returns. All fields but Tenant are required.
type Controller struct {
	Name     string
	Informer cache.SharedIndexInformer
	// Reconcile reconciles one object, which it must not modify. It returns the delay after
	// which it is called again for the object, 0 for its next change only. After an error
	// it is retried with backoff.
	Reconcile func(ctx context.Context, object *unstructured.Unstructured) (time.Duration, error)
	// Tenant returns on whose behalf an object is reconciled. Tenants take turns, so that one with
	// many objects does not delay those of others. If nil, all objects have the same tenant.
	Tenant func(object *unstructured.Unstructured) string
	Clock  clock.WithTicker
	Log    *slog.Logger
}

// Run runs the controller until ctx ends, and then returns nil.
func (c Controller) Run(ctx context.Context) error {
	queue := newQueue(c.Name, c.Clock, c.order(), c.Log)
	key := func(o *unstructured.Unstructured) string { return cache.MetaObjectToName(o).String() }
	if err := queue.Follow(c.Informer, key); err != nil {
		return err
	}
	go c.Informer.RunWithContext(ctx)
	queue.Run(ctx, 1, func(ctx context.Context, key string) (time.Duration, error) {
		object, exists, err := c.Informer.GetStore().GetByKey(key)
		if err != nil || !exists {
			return 0, err
		}
		return c.Reconcile(ctx, object.(*unstructured.Unstructured))
	})
	return nil
}

// order returns the order in which keys are reconciled.
func (c Controller) order() workqueue.Queue[string] {
	if c.Tenant == nil {
		return workqueue.DefaultQueue[string]()
	}
	return newTurns(func(key string) string {
		object, exists, err := c.Informer.GetStore().GetByKey(key)
		if err != nil || !exists {
			return ""
		}
		return c.Tenant(object.(*unstructured.Unstructured))
	})
}
