package tokencleaner

import (
	"context"
	"encoding/base64"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// cleaner looks at every token's secret when it appears, when it changes and when
// it expires.
type cleaner struct {
	secrets  dynamic.ResourceInterface
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string] // of keys in the informer
	clock    clock.Clock
	log      *slog.Logger
}

func newCleaner(secrets dynamic.ResourceInterface, informer cache.SharedIndexInformer, c clock.WithTicker, log *slog.Logger) (*cleaner, error) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: controller, Clock: c})
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	})
	return &cleaner{secrets: secrets, informer: informer, queue: queue, clock: c, log: log}, err
}

// run works until ctx ends.
func (c *cleaner) run(ctx context.Context) error {
	go c.informer.RunWithContext(ctx)
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	for {
		key, stop := c.queue.Get()
		if stop {
			return nil
		}
		wait, err := c.reconcile(ctx, key)
		switch {
		case err != nil:
			c.log.Warn("cannot delete an expired token", "secret", key, "error", err)
			c.queue.AddRateLimited(key)
		case wait > 0:
			c.queue.Forget(key)
			c.queue.AddAfter(key, wait)
		default:
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// reconcile deletes the secret if it has expired. It returns how long to wait
// before looking again; 0 when there is nothing to wait for.
func (c *cleaner) reconcile(ctx context.Context, key string) (time.Duration, error) {
	object, exists, err := c.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return 0, err
	}
	secret := object.(*unstructured.Unstructured)
	expires, ok := expiration(secret)
	if !ok {
		return 0, nil
	}
	if left := expires.Sub(c.clock.Now()); left > 0 {
		return left, nil
	}
	uid, version := secret.GetUID(), secret.GetResourceVersion()
	// With preconditions: a token that was renewed a moment ago must stay.
	err = c.secrets.Delete(ctx, secret.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil
	}
	if err == nil {
		c.log.Info("deleted an expired token", "secret", key)
	}
	return 0, err
}

// expiration returns when a token ends; false when it says nothing readable.
func expiration(secret *unstructured.Unstructured) (time.Time, bool) {
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", "expiration")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return time.Time{}, false
	}
	expires, err := time.Parse(time.RFC3339, string(text))
	return expires, err == nil
}
