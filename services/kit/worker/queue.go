package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// The delays between attempts at one key, doubling from the first to the longest.
const (
	firstDelay   = 20 * time.Millisecond
	longestDelay = 10 * time.Second
)

// ErrLater says that a key has to be looked at again, with growing delay, although
// nothing went wrong: the work waits for others.
var ErrLater = errors.New("waiting for others")

// Queue holds the keys that a controller has to look at: each once, however often
// it was added, and by one goroutine at a time.
type Queue[K comparable] struct {
	name  string
	queue workqueue.TypedRateLimitingInterface[K]
	log   *slog.Logger
}

// NewQueue returns an empty queue of the controller with that name.
func NewQueue[K comparable](name string, log *slog.Logger) *Queue[K] {
	return newQueue[K](name, clock.RealClock{}, log)
}

func newQueue[K comparable](name string, now clock.WithTicker, log *slog.Logger) *Queue[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstDelay, longestDelay)
	return &Queue[K]{name: name, log: log,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: name, Clock: now})}
}

// Add puts keys into the queue, to be looked at now.
func (q *Queue[K]) Add(keys ...K) {
	for _, key := range keys {
		q.queue.Add(key)
	}
}

// Follow adds the key of each object that an informer sees come, change or go.
func (q *Queue[K]) Follow(informer cache.SharedIndexInformer, key func(*unstructured.Unstructured) K) error {
	add := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(*unstructured.Unstructured); ok {
			q.Add(key(o))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add,
	})
	return err
}

// Run looks at the keys, several at a time, until ctx ends. An error means another
// attempt later; a duration, that there is something to see after that time.
func (q *Queue[K]) Run(ctx context.Context, workers int, reconcile func(ctx context.Context, key K) (time.Duration, error)) {
	stop := context.AfterFunc(ctx, q.queue.ShutDown)
	defer stop()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				key, over := q.queue.Get()
				if over {
					return
				}
				again, err := reconcile(ctx, key)
				q.settle(ctx, key, again, err)
			}
		})
	}
	group.Wait()
}

// settle puts the key back if there is more to do.
func (q *Queue[K]) settle(ctx context.Context, key K, again time.Duration, err error) {
	defer q.queue.Done(key)
	if err != nil {
		if !errors.Is(err, ErrLater) && ctx.Err() == nil {
			q.log.Warn("will be tried again", "controller", q.name, "key", key, "error", err)
		}
		q.queue.AddRateLimited(key)
		return
	}
	q.queue.Forget(key)
	if again > 0 {
		q.queue.AddAfter(key, again)
	}
}
