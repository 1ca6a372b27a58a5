package resourcequota

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/resource"
)

// tally counts the objects of one type in all namespaces. It stores only what each
// object contributes, which item returns.
type tally struct {
	objects cache.SharedIndexInformer
	item    func(object any) quota.Item
	now     func() time.Time
}

// counted is an object in a tally.
type counted struct {
	metav1.ObjectMeta
	quota.Item
}

// used sums up what counts in a quota of a namespace.
func (t *tally) used(namespace string, q *quota.Quota) quota.Amounts {
	sum, now := quota.Amounts{}, t.now()
	found, _ := t.objects.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	for _, each := range found {
		if item := t.item(each); item.In(q) {
			sum = sum.Plus(item.At(now).Used)
		}
	}
	return sum
}

// tally returns the tally of a type, and starts it if there is none. It returns nil if
// the API does not serve the type, and ErrLater while the tally is incomplete.
func (c *Controller) tally(ctx context.Context, gr resource.GroupResource) (*tally, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.counted[gr]
	if t == nil {
		var err error
		if t, err = c.startTally(ctx, gr); t == nil {
			return nil, err
		}
		c.counted[gr] = t
	}
	if !t.objects.HasSynced() {
		return nil, worker.ErrLater
	}
	return t, nil
}

// startTally starts a tally that runs until ctx, which is that of Run, ends.
func (c *Controller) startTally(ctx context.Context, gr resource.GroupResource) (*tally, error) {
	if gr == ofQuotas {
		// A separate tally could be behind the events that cause counts.
		one, err := c.Counter.Read(gr, nil)
		return &tally{c.seen, func(any) quota.Item { return one }, c.Clock.Now}, err
	}
	served, err := c.Inventory.Read(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range served.Types {
		if kind.Group != gr.Group || kind.Resource != gr.Resource || !kind.Namespaced || !kind.Can("list", "watch") {
			continue
		}
		client := c.Metadata // metadata is enough to count objects
		if quota.Weighs(gr) {
			client = c.Client
		}
		t := &tally{worker.NewInformer(client.Resource(kind.GroupVersionResource), ""), func(o any) quota.Item { return o.(*counted).Item }, c.Clock.Now}
		if err := c.prepare(t, gr); err != nil {
			return nil, err
		}
		c.tallies.Go(func() { t.objects.RunWithContext(ctx) })
		return t, nil
	}
	return nil, nil
}

// prepare makes a tally store only what counts, and triggers a recount when usage
// decreases.
func (c *Controller) prepare(t *tally, gr resource.GroupResource) error {
	if err := t.objects.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}); err != nil {
		return err
	}
	err := t.objects.SetTransform(func(o any) (any, error) {
		object, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil // reduced before
		}
		encoded, err := json.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		reduced := &counted{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
			ResourceVersion: object.GetResourceVersion()}}
		reduced.Item, err = c.Counter.Read(gr, encoded)
		return reduced, err
	})
	if err != nil {
		return err
	}
	_, err = t.objects.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if after := after.(*counted); !before.(*counted).Equal(after.Item) {
				c.queue.Add(after.Namespace)
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if gone, ok := o.(*counted); ok {
				c.queue.Add(gone.Namespace)
			}
		},
	})
	return err
}
