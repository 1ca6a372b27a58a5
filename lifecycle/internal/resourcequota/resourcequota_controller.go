// Package resourcequota updates the status of ResourceQuotas: it recounts usage when a
// quota is new or changed, when a counted object is deleted, and periodically. In between,
// admission adds the usage of the objects that it admits, and gives back that of those that
// are not stored. It watches only types that a quota limits, and rejects nothing. It serves "Admission plugins" of the specification.
package resourcequota

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/resource"
)

// Name is the controller's name in --controllers.
const Name = "resourcequota"

var ofQuotas = resource.GroupResource{Resource: "resourcequotas"}

const (
	// workers is how many namespaces are counted concurrently.
	workers = 5
	// recount is how long a usage may be wrong because of objects that admission
	// counted but that were not stored, and of pods that must have stopped.
	recount = 5 * time.Minute
	// afterRefund is when a quota is counted whose usage has fallen: admission gives back what an object is
	// charged that is not stored, also if usage has been counted in between, which is then too low.
	afterRefund = 2 * time.Second
)

// Config configures the controller.
type Config struct {
	Client, Metadata dynamic.Interface
	Inventory        *inventory.Source
	Counter          quota.Counter
	Clock            clock.PassiveClock // the API's, by which pods stop
	Log              *slog.Logger
}

// Controller counts the usage of quotas.
type Controller struct {
	Config
	quotas dynamic.NamespaceableResourceInterface
	seen   cache.SharedIndexInformer // all quotas
	queue  *worker.Queue[string]     // of namespaces

	mu      sync.Mutex
	counted map[resource.GroupResource]*tally
	tallies sync.WaitGroup
}

// New returns a controller. It follows nothing before it runs.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, quotas: config.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: ofQuotas.Resource}),
		queue: worker.NewQueue[string](Name, config.Log), counted: map[resource.GroupResource]*tally{}}
	c.seen = worker.NewInformer(c.quotas, "")
	if err := c.seen.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}); err != nil {
		return nil, err
	}
	_, err := c.seen.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.queue.Add(o.(*unstructured.Unstructured).GetNamespace()) },
		// Usage that admission adds does not require a recount.
		UpdateFunc: func(former, o any) {
			changed := o.(*unstructured.Unstructured)
			q, err := read(changed)
			if err != nil || !q.Spec.Hard.Equal(q.Status.Hard) {
				c.queue.Add(changed.GetNamespace())
			} else if before, err := read(former.(*unstructured.Unstructured)); err == nil && len(before.Status.Used.Beyond(q.Status.Used)) > 0 {
				c.queue.AddAfter(changed.GetNamespace(), afterRefund)
			}
		},
		// Other quotas may limit the number of quotas.
		DeleteFunc: func(o any) {
			if gone, err := cache.DeletionHandlingObjectToName(o); err == nil {
				c.queue.Add(gone.Namespace)
			}
		},
	})
	return c, err
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	go c.seen.RunWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), c.seen.HasSynced) {
		c.queue.Run(ctx, workers, c.reconcile)
	}
	c.tallies.Wait()
	return nil
}

func read(o *unstructured.Unstructured) (quota.Quota, error) {
	var q quota.Quota
	encoded, err := json.Marshal(o.Object)
	if err != nil {
		return q, err
	}
	return q, json.Unmarshal(encoded, &q)
}
