package customresources

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/resource"
)

// pageSize is the page size of lists.
const pageSize = 500

// reconcile reconciles one definition.
func (c *Controller) reconcile(ctx context.Context, name string) (time.Duration, error) {
	known, exists, err := c.existing.GetStore().GetByKey(name)
	if err != nil {
		return 0, err
	}
	if !exists {
		c.deletions.Forget(name)
		c.offers.end(name)
		return 0, nil
	}
	if seen := known.(*unstructured.Unstructured); seen.GetDeletionTimestamp() == nil {
		return 0, c.offerNames(ctx, seen)
	}
	d, err := c.definitions.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !c.holds(d) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return c.empty(ctx, d)
}

// holds reports whether a deleted definition waits for its objects.
func (c *Controller) holds(d *unstructured.Unstructured) bool {
	return d.GetDeletionTimestamp() != nil && slices.Contains(d.GetFinalizers(), c.finalizer)
}

// served identifies the objects of a definition: their resource, and a field selector that
// the front door rejects unless the path serves the types of the definition with this UID.
// So no other objects are deleted, whatever names the definition has and however stale the
// front door is.
type served struct {
	schema.GroupVersionResource
	definition string
}

// empty deletes the objects of a definition's types. It removes the finalizer if
// nothing is left, else it retries.
func (c *Controller) empty(ctx context.Context, d *unstructured.Unstructured) (time.Duration, error) {
	left := c.deletions.Left(d, c.Clock.Now()) // a front door may still admit objects
	if of, ok := servedBy(d); ok {
		places, err := c.places(ctx, of)
		if err == nil {
			err = c.deleteAll(ctx, of, places)
		}
		if err == nil {
			places, err = c.places(ctx, of)
		}
		if apierrors.IsConflict(err) { // a front door still, or again, serves another definition
			return 0, worker.ErrLater
		}
		if err != nil {
			return 0, err
		}
		if len(places) > 0 {
			return 0, worker.ErrLater
		}
		if left > 0 {
			return left, nil
		}
	}
	d.SetFinalizers(slices.DeleteFunc(d.GetFinalizers(), func(f string) bool { return f == c.finalizer }))
	_, err := c.definitions.Update(ctx, d, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case apierrors.IsConflict(err):
		return 0, worker.ErrLater
	case err == nil:
		c.Log.Info("finalized a deleted definition", "definition", d.GetName())
	}
	return 0, err
}

// servedBy returns the resource of the objects of a definition. ok is false if its names
// were never accepted or it was never established, so that it has no objects. Only the
// front door sets both conditions.
func servedBy(d *unstructured.Unstructured) (of served, ok bool) {
	of.definition = resource.DefinitionUID + "=" + string(d.GetUID())
	of.Group, _, _ = unstructured.NestedString(d.Object, "spec", "group")
	of.Resource, _, _ = unstructured.NestedString(d.Object, "status", "acceptedNames", "plural")
	for _, version := range objects(d, "spec", "versions") {
		if version["storage"] == true { // which is served during the deletion
			of.Version, _ = version["name"].(string)
		}
	}
	return of, of.Version != "" && of.Resource != "" && d.GetName() == of.Resource+"."+of.Group && hasCondition(d, "Established", "True")
}

// places returns the namespaces with objects of a definition, "" for cluster-scoped
// ones. A type that is not served has none.
func (c *Controller) places(ctx context.Context, of served) (map[string]bool, error) {
	found := map[string]bool{}
	options := metav1.ListOptions{Limit: pageSize, FieldSelector: of.definition}
	for {
		page, err := c.Metadata.Resource(of.GroupVersionResource).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			found[page.Items[i].GetNamespace()] = true
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return found, nil
		}
	}
}

// deleteAll deletes the objects of a definition, namespace by namespace.
func (c *Controller) deleteAll(ctx context.Context, of served, places map[string]bool) error {
	background := metav1.DeletePropagationBackground
	selected := metav1.ListOptions{FieldSelector: of.definition}
	var errs []error
	for namespace := range places {
		err := c.Metadata.Resource(of.GroupVersionResource).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, selected)
		if apierrors.IsConflict(err) {
			return err
		}
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func hasCondition(d *unstructured.Unstructured, kind, status string) bool {
	return slices.ContainsFunc(objects(d, "status", "conditions"), func(c map[string]any) bool {
		return c["type"] == kind && c["status"] == status
	})
}

// objects returns the items of a list.
func objects(d *unstructured.Unstructured, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(d.Object, path...)
	items, _ := list.([]any)
	found := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}
