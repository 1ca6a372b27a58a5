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

// The delays between retries of one key, doubling from the first to the longest.
const (
	firstDelay   = 20 * time.Millisecond
	longestDelay = 10 * time.Second
)

// ErrLater makes a queue retry a key with backoff and without a log line, because
// reconciling it waits for other controllers or clients.
var ErrLater = errors.New("waiting for others")

// Queue holds the keys that a controller has to reconcile: each once, however often it was
// added, and in one goroutine at a time.
type Queue[K comparable] struct {
	name  string
	queue workqueue.TypedRateLimitingInterface[K]
	log   *slog.Logger
}

// NewQueue returns an empty queue of the named controller.
func NewQueue[K comparable](name string, log *slog.Logger) *Queue[K] {
	return newQueue(name, clock.RealClock{}, workqueue.DefaultQueue[K](), log)
}

func newQueue[K comparable](name string, now clock.WithTicker, order workqueue.Queue[K], log *slog.Logger) *Queue[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstDelay, longestDelay)
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Clock: now, Queue: order})
	delayed := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Name: name, Clock: now, Queue: ready})
	return &Queue[K]{name: name, log: log,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: name, Clock: now, DelayingQueue: delayed})}
}

// Add adds keys to the queue.
func (q *Queue[K]) Add(keys ...K) {
	for _, key := range keys {
		q.queue.Add(key)
	}
}

// AddAfter adds a key to the queue after a delay, once if it is added again before.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) { q.queue.AddAfter(key, delay) }

// Follow adds the key of each object that is added, updated or deleted in an informer.
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

// Run reconciles keys in several goroutines until ctx ends. A key is retried with backoff
// after an error, and reconciled again after the returned delay if that is not 0.
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
				q.requeue(ctx, key, again, err)
			}
		})
	}
	group.Wait()
}

// recheckAfter bounds the time until a key is reconciled again for a later time: that may have been
// computed with a wrong clock.
const recheckAfter = time.Hour

// requeue adds the key again after an error or for a later time.
func (q *Queue[K]) requeue(ctx context.Context, key K, again time.Duration, err error) {
	defer q.queue.Done(key)
	if err != nil {
		if !errors.Is(err, ErrLater) && ctx.Err() == nil {
			q.log.Warn("reconciling failed, retrying", "controller", q.name, "key", key, "error", err)
		}
		q.queue.AddRateLimited(key)
		return
	}
	q.queue.Forget(key)
	if again > 0 {
		q.queue.AddAfter(key, min(again, recheckAfter))
	}
}
