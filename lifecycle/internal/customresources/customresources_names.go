package customresources

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/tree"
)

// The front door accepts the names of a definition when it is stored. So a definition whose names
// were not accepted is stored again once no other one has them. The front door may not have seen yet
// that they are free: the write is repeated until it has, for a while, because it never accepts names
// of built-in types.

// longestWait is how long free names are offered without success.
const longestWait = time.Minute

// offers are the definitions that free names are offered to, with the time of the first offer.
type offers struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// goesOn reports whether a definition is still offered its names at a time.
func (o *offers) goesOn(name string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, ok := o.since[name]
	if !ok {
		first, o.since[name] = now, now
	}
	return now.Sub(first) < longestWait
}

// end forgets a definition, which is offered its names anew the next time.
func (o *offers) end(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, name)
}

// followNames adds the definitions to the queue that wait for names of one that is deleted or whose names
// change.
func (c *Controller) followNames() error {
	_, err := c.existing.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if was, now := namesOf(before, "status", "acceptedNames"), namesOf(after, "status", "acceptedNames"); !slices.Equal(was, now) {
				c.addWaiting(after.(*unstructured.Unstructured).GetName())
			}
		},
		DeleteFunc: func(gone any) {
			if name, err := cache.DeletionHandlingObjectToName(gone); err == nil {
				c.addWaiting(name.Name)
			}
		},
	})
	return err
}

// addWaiting adds the other definitions of a definition's group whose names are not accepted.
func (c *Controller) addWaiting(changed string) {
	_, group, _ := strings.Cut(changed, ".")
	for _, each := range c.existing.GetStore().List() {
		d := each.(*unstructured.Unstructured)
		if _, of, _ := strings.Cut(d.GetName(), "."); of == group && d.GetName() != changed && hasCondition(d, "NamesAccepted", "False") {
			c.offers.end(d.GetName())
			c.queue.Add(d.GetName())
		}
	}
}

// offerNames stores a definition again if its names were not accepted but are free.
func (c *Controller) offerNames(ctx context.Context, d *unstructured.Unstructured) error {
	if !hasCondition(d, "NamesAccepted", "False") || c.taken(d) {
		c.offers.end(d.GetName())
		return nil
	}
	if !c.offers.goesOn(d.GetName(), time.Now()) {
		return nil
	}
	now, err := c.definitions.Get(ctx, d.GetName(), metav1.GetOptions{})
	if err == nil {
		now, err = c.definitions.Update(ctx, now, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err), err == nil && hasCondition(now, "NamesAccepted", "False"):
		return worker.ErrLater
	}
	return err
}

// taken reports whether another definition of the group has a name that this one requests.
func (c *Controller) taken(d *unstructured.Unstructured) bool {
	_, group, _ := strings.Cut(d.GetName(), ".")
	requested := namesOf(d, "spec", "names")
	return slices.ContainsFunc(c.existing.GetStore().List(), func(each any) bool {
		other := each.(*unstructured.Unstructured)
		if _, of, _ := strings.Cut(other.GetName(), "."); of != group || other.GetName() == d.GetName() {
			return false
		}
		return slices.ContainsFunc(namesOf(other, "status", "acceptedNames"), func(name string) bool { return slices.Contains(requested, name) })
	})
}

// namesOf returns the names of resources and, marked, of kinds at a path of a definition, with those that
// the front door derives from others.
func namesOf(definition any, path ...string) []string {
	d, _ := definition.(*unstructured.Unstructured)
	names, _, _ := unstructured.NestedMap(d.Object, path...)
	kind, singular, listKind := tree.Text(names, "kind"), tree.Text(names, "singular"), tree.Text(names, "listKind")
	if kind != "" && singular == "" {
		singular = strings.ToLower(kind)
	}
	if kind != "" && listKind == "" {
		listKind = kind + "List"
	}
	all := append([]string{tree.Text(names, "plural"), singular}, tree.Texts(names, "shortNames")...)
	for _, name := range []string{kind, listKind} {
		if name != "" {
			all = append(all, "kind "+name)
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}
