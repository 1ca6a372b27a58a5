package worker

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Controller lets a worker look at every object when it appears, when it changes
// and when the worker has asked to see it again. All fields are required.
type Controller struct {
	Name     string
	Informer cache.SharedIndexInformer
	// Reconcile does what has to be done about one object, which it must not
	// change. It returns how long to wait before it wants to see the object again;
	// 0 when there is nothing to wait for. After an error it sees it again soon.
	Reconcile func(ctx context.Context, object *unstructured.Unstructured) (time.Duration, error)
	Clock     clock.WithTicker
	Log       *slog.Logger
}

// Run works until ctx ends, and then returns nil.
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
