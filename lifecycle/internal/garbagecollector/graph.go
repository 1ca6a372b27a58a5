package garbagecollector

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/lifecycle/internal/inventory"
)

// object is a node of the graph. It is immutable: a newer state is another value.
type object struct {
	kind            *inventory.Type
	namespace, name string
	uid             types.UID
	owners          []metav1.OwnerReference
	// seen is when the object was first known to be deleted, zero before; orphans and foreground
	// report a finalizer that requires its dependents to be released, or to be deleted
	// first.
	seen                time.Time
	orphans, foreground bool
}

func (o *object) deleting() bool { return !o.seen.IsZero() }

// waitsForDependents reports whether the deletion of the object waits for its
// dependents.
func (o *object) waitsForDependents() bool { return o.deleting() && o.foreground }

// blocks reports whether an owner that is deleted in the foreground has to wait for
// this object.
func (o *object) blocks(owner types.UID) bool {
	return slices.ContainsFunc(o.owners, func(r metav1.OwnerReference) bool {
		return r.UID == owner && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
}

// is reports whether a reference by an object in a namespace refers to this object. The
// uid alone is not enough: the rest of the reference has to match too.
func (o *object) is(r metav1.OwnerReference, namespace string) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	return err == nil && o.uid == r.UID && o.name == r.Name && o.kind.Kind == r.Kind && o.kind.Group == gv.Group &&
		(o.namespace == "" || o.namespace == namespace)
}

// graph holds all objects that own or are owned, as the watches have delivered them.
// Objects in it may be gone, and objects that are not in it may exist.
type graph struct {
	mu      sync.Mutex
	objects map[types.UID]*object
	// dependents by owner, which need not be in objects.
	dependents map[types.UID]map[types.UID]*object
	// enqueue is called for objects that have to be reconciled.
	enqueue func(...types.UID)
}

func newGraph(enqueue func(...types.UID)) *graph {
	return &graph{objects: map[types.UID]*object{}, dependents: map[types.UID]map[types.UID]*object{}, enqueue: enqueue}
}

// put adds or replaces an object, which nobody else has yet.
func (g *graph) put(o *object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.objects[o.uid]
	if old != nil && old.deleting() && o.deleting() {
		o.seen = old.seen
	}
	g.objects[o.uid] = o
	if old != nil {
		g.unlink(old)
	}
	for _, r := range o.owners {
		if g.dependents[r.UID] == nil {
			g.dependents[r.UID] = map[types.UID]*object{}
		}
		g.dependents[r.UID][o.uid] = o
	}
	ownersChanged := old == nil || !slices.EqualFunc(old.owners, o.owners, sameReference)
	if o.deleting() && (o.orphans || o.foreground) || ownersChanged && !o.deleting() && g.lacksOwner(o) {
		g.enqueue(o.uid)
	}
	if o.waitsForDependents() && (old == nil || !old.waitsForDependents()) {
		g.enqueueDependents(o.uid)
	}
	if old != nil && ownersChanged {
		g.enqueueWaitingOwners(old)
	}
}

// remove removes a deleted object: its dependents have lost an owner, and owners that
// waited for it may go.
func (g *graph) remove(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enqueueDependents(uid) // also if their owner was gone before it was known
	o := g.objects[uid]
	if o == nil {
		return
	}
	delete(g.objects, uid)
	g.unlink(o)
	g.enqueueWaitingOwners(o)
}

// keepOnly removes the objects of a type that are not in the given set.
func (g *graph) keepOnly(kind schema.GroupResource, present map[types.UID]bool) {
	for _, uid := range g.ofType(kind) {
		if !present[uid] {
			g.remove(uid)
		}
	}
}

// forget drops the objects of a type that is no longer followed. They may still exist, so
// the owners of their dependents have to be read from the API.
func (g *graph) forget(kind schema.GroupResource) {
	for _, uid := range g.ofType(kind) {
		g.mu.Lock()
		g.unlink(g.objects[uid])
		delete(g.objects, uid)
		g.enqueueDependents(uid)
		g.mu.Unlock()
	}
}

func (g *graph) ofType(kind schema.GroupResource) (uids []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for uid, o := range g.objects {
		if o.kind.GroupResource() == kind {
			uids = append(uids, uid)
		}
	}
	return uids
}

// get returns an object; nil if it is unknown.
func (g *graph) get(uid types.UID) *object {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.objects[uid]
}

// dependentsOf returns the objects that name an owner.
func (g *graph) dependentsOf(uid types.UID) []*object {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*object, 0, len(g.dependents[uid]))
	for _, o := range g.dependents[uid] {
		all = append(all, o)
	}
	return all
}

// blocked reports whether a dependent blocks the deletion of an owner.
func (g *graph) blocked(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.dependents[uid] {
		if o.blocks(uid) {
			return true
		}
	}
	return false
}

func (g *graph) unlink(o *object) {
	for _, r := range o.owners {
		delete(g.dependents[r.UID], o.uid)
		if len(g.dependents[r.UID]) == 0 {
			delete(g.dependents, r.UID)
		}
	}
}

// lacksOwner reports whether some owner is not known to stay.
func (g *graph) lacksOwner(o *object) bool {
	return slices.ContainsFunc(o.owners, func(r metav1.OwnerReference) bool {
		owner := g.objects[r.UID]
		return owner == nil || owner.waitsForDependents() || !owner.is(r, o.namespace)
	})
}

func (g *graph) enqueueDependents(uid types.UID) {
	for dependent := range g.dependents[uid] {
		g.enqueue(dependent)
	}
}

func (g *graph) enqueueWaitingOwners(o *object) {
	for _, r := range o.owners {
		if owner := g.objects[r.UID]; owner != nil && owner.waitsForDependents() {
			g.enqueue(r.UID)
		}
	}
}

func sameReference(a, b metav1.OwnerReference) bool {
	blocks := func(r metav1.OwnerReference) bool { return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion }
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion && blocks(a) == blocks(b)
}
