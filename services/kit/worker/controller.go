package worker

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Controller reconciles every object when it is added, when it changes and after the delay
// that Reconcile returns. All fields are required.
type Controller struct {
	Name     string
	Informer cache.SharedIndexInformer
	// Reconcile reconciles one object, which it must not modify. It returns the delay after
	// which it is called again for the object, 0 for its next change only. After an error
	// it is retried with backoff.
	Reconcile func(ctx context.Context, object *unstructured.Unstructured) (time.Duration, error)
	Clock     clock.WithTicker
	Log       *slog.Logger
}

// Run runs the controller until ctx ends, and then returns nil.
func (c Controller) Run(ctx context.Context) error {
	queue := newQueue[string](c.Name, c.Clock, c.Log)
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
