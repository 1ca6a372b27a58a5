package resourcequota

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/resource"
)

// reconcile recounts all quotas of a namespace.
func (c *Controller) reconcile(ctx context.Context, namespace string) (time.Duration, error) {
	found, err := c.seen.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	var errs []error
	for _, each := range found {
		errs = append(errs, c.count(ctx, each.(*unstructured.Unstructured)))
	}
	return recount, errors.Join(errs...)
}

// count updates the status of one quota.
func (c *Controller) count(ctx context.Context, seen *unstructured.Unstructured) error {
	if seen.GetDeletionTimestamp() != nil {
		return nil
	}
	q, err := read(seen)
	if err != nil {
		return err
	}
	used, err := c.used(ctx, seen.GetNamespace(), &q)
	if err != nil {
		return err
	}
	if q.Status.Hard.Equal(q.Spec.Hard) && q.Status.Used.Equal(used) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": seen.GetUID(), "resourceVersion": seen.GetResourceVersion()},
		"status":   map[string]any{"hard": replacing(q.Status.Hard, q.Spec.Hard), "used": replacing(q.Status.Used, used)},
	})
	if err != nil {
		return err
	}
	_, err = c.quotas.Namespace(seen.GetNamespace()).Patch(ctx, seen.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return worker.IgnoreRace(err)
}

// replacing returns the part of a merge patch that turns one set of amounts into
// another.
func replacing(before, after quota.Amounts) map[string]any {
	all := map[string]any{}
	for name := range before {
		all[name] = nil
	}
	for name, q := range after {
		all[name] = q.String()
	}
	return all
}

// used counts the usage of all resources that a quota limits, except those that cannot
// be counted.
func (c *Controller) used(ctx context.Context, namespace string, q *quota.Quota) (quota.Amounts, error) {
	used, counted := quota.Amounts{}, map[resource.GroupResource]bool{}
	var none = quota.Amounts{}
	for name := range q.Spec.Hard {
		gr, ok := c.Counter.Counted(name)
		if !ok {
			continue
		}
		t, err := c.tally(ctx, gr)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue // not a type that the API serves
		}
		zero := q.Spec.Hard[name].DeepCopy()
		zero.Sub(q.Spec.Hard[name])
		none[name] = zero
		if !counted[gr] {
			counted[gr] = true
			used = used.Plus(t.used(namespace, q))
		}
	}
	return none.Plus(used.Of(none)), nil
}
