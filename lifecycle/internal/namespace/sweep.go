package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/lifecycle/internal/inventory"
)

// pageSize is the page size of the lists that count objects.
const pageSize = 500

// findings are the result of one sweep through a namespace.
type findings struct {
	discovery  error    // failures of discovery
	malformed  []string // invalid group versions
	failures   []error
	remaining  map[schema.GroupResource]int
	finalizers map[string]int // remaining objects by finalizer
}

func noFindings() findings {
	return findings{remaining: map[schema.GroupResource]int{}, finalizers: map[string]int{}}
}

// sweep deletes everything in the namespace and counts what remains. Pods are deleted
// first and alone: what restricts them, such as network policies, has to outlive them.
func (c *Controller) sweep(ctx context.Context, namespace string) findings {
	all := noFindings()
	served, err := c.Inventory.Read(ctx)
	if err != nil {
		all.discovery = err
		return all
	}
	if len(served.Stale) > 0 {
		all.discovery = fmt.Errorf("discovery is stale for these group versions: %v", served.Stale)
	}
	if err := c.known(ctx, served); err != nil {
		all.discovery = errors.Join(all.discovery, err)
	}
	all.malformed = served.Malformed
	var pods, others []*inventory.Type
	for _, t := range served.Types {
		switch {
		case !t.Namespaced || !t.Can("list", "delete"):
		case t.GroupResource() == schema.GroupResource{Resource: "pods"}:
			pods = append(pods, t)
		default:
			others = append(others, t)
		}
	}
	if all.add(c.empty(ctx, namespace, pods)); len(all.remaining) > 0 || len(all.failures) > 0 {
		return all
	}
	all.add(c.empty(ctx, namespace, others))
	return all
}

// known returns an error if discovery may lack types, because the API cannot read all objects that define them.
func (c *Controller) known(ctx context.Context, served *inventory.Inventory) error {
	for _, t := range served.Types {
		switch t.GroupResource().Resource {
		case "customresourcedefinitions", "apiservices":
			if err := c.each(ctx, "", t, func(*unstructured.Unstructured) error { return nil }); err != nil {
				return fmt.Errorf("not all types are known: %w", err)
			}
		}
	}
	return nil
}

// empty deletes the objects of some types, several types concurrently.
func (c *Controller) empty(ctx context.Context, namespace string, all []*inventory.Type) findings {
	var mu sync.Mutex
	sum := noFindings()
	group := errgroup.Group{}
	group.SetLimit(typesAtOnce)
	for _, t := range all {
		group.Go(func() error {
			found := c.emptyType(ctx, namespace, t)
			mu.Lock()
			defer mu.Unlock()
			sum.add(found)
			return nil
		})
	}
	_ = group.Wait() // errors are in the findings
	return sum
}

// emptyType deletes the objects of one type, if there are any, and counts again.
func (c *Controller) emptyType(ctx context.Context, namespace string, t *inventory.Type) findings {
	found, err := c.count(ctx, namespace, t)
	if err == nil && len(found.remaining) > 0 {
		if err = c.deleteAll(ctx, namespace, t); err == nil {
			found, err = c.count(ctx, namespace, t)
		}
	}
	if err != nil {
		found.failures = append(found.failures, fmt.Errorf("%s: %w", t.GroupVersionResource.String(), err))
	}
	return found
}

// count counts the objects of a type.
func (c *Controller) count(ctx context.Context, namespace string, t *inventory.Type) (findings, error) {
	found := noFindings()
	err := c.each(ctx, namespace, t, func(o *unstructured.Unstructured) error {
		found.remaining[t.GroupResource()]++
		for _, finalizer := range o.GetFinalizers() {
			found.finalizers[finalizer]++
		}
		return nil
	})
	return found, err
}

// deleteAll deletes the objects of a type, with one request if the type supports it.
// Dependents are in the namespace too, so no deletion needs to wait for them.
func (c *Controller) deleteAll(ctx context.Context, namespace string, t *inventory.Type) error {
	in := c.Client.Resource(t.GroupVersionResource).Namespace(namespace)
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if t.Can("deletecollection") {
		err := c.Metadata.Resource(t.GroupVersionResource).Namespace(namespace).DeleteCollection(ctx, options, metav1.ListOptions{})
		if !apierrors.IsMethodNotSupported(err) {
			return err
		}
	}
	return c.each(ctx, namespace, t, func(o *unstructured.Unstructured) error {
		err := in.Delete(ctx, o.GetName(), options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// each visits the metadata of all objects of a type. A type that has been removed in
// the meantime has none.
func (c *Controller) each(ctx context.Context, namespace string, t *inventory.Type, visit func(*unstructured.Unstructured) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.Metadata.Resource(t.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// add merges findings.
func (f *findings) add(more findings) {
	f.failures = append(f.failures, more.failures...)
	for resource, n := range more.remaining {
		f.remaining[resource] += n
	}
	for finalizer, n := range more.finalizers {
		f.finalizers[finalizer] += n
	}
}
