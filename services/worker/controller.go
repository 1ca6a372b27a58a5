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
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: c.Name, Clock: c.Clock})
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	_, err := c.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	})
	if err != nil {
		return err
	}
	go c.Informer.RunWithContext(ctx)
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		key, stop := queue.Get()
		if stop {
			return nil
		}
		c.work(ctx, queue, key)
		queue.Done(key)
	}
}

// work reconciles one object, if it still is there.
func (c Controller) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], key string) {
	object, exists, err := c.Informer.GetStore().GetByKey(key)
	var wait time.Duration
	if err == nil && exists {
		wait, err = c.Reconcile(ctx, object.(*unstructured.Unstructured))
	}
	if err != nil {
		c.Log.Warn("work on an object failed and is tried again", "object", key, "error", err)
		queue.AddRateLimited(key)
		return
	}
	queue.Forget(key)
	if wait > 0 {
		queue.AddAfter(key, wait)
	}
}
