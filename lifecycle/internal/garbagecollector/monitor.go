package garbagecollector

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/lifecycle/internal/inventory"
)

// monitor keeps the graph up to date with the objects of one type. It stores objects
// only in the graph, without an informer: 480 bytes for a pod's metadata, compared to a
// measured 1.7 KB (typed) or 6.4 KB (untyped) in an informer's store.
type monitor struct {
	kind   *inventory.Type
	graph  *graph
	clock  clock.PassiveClock
	stop   context.CancelFunc
	listed atomic.Bool
	// skipped is true if started is so long ago that deletions do not wait for the first list.
	started time.Time
	skipped bool
	// changed is called with each list and each change. The first list may have what discovery,
	// which was read before, has not.
	changed func()
}

// run follows the type until ctx ends.
func (m *monitor) run(ctx context.Context, source cache.ListerWatcher) {
	options := cache.ReflectorOptions{Name: m.kind.GroupVersionResource.String()}
	cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, m, options).RunWithContext(ctx)
}

// Add, Update, Delete, Replace and Resync implement the store that a reflector fills.

// Add adds a new object.
func (m *monitor) Add(o any) error { return m.Update(o) }

// Update replaces an object.
func (m *monitor) Update(o any) error {
	m.graph.put(m.object(o))
	m.changed()
	return nil
}

// Delete removes an object.
func (m *monitor) Delete(o any) error {
	m.graph.remove(o.(*metav1.PartialObjectMetadata).UID)
	m.changed()
	return nil
}

// Replace replaces all objects of the type.
func (m *monitor) Replace(all []any, _ string) error {
	present := make(map[types.UID]bool, len(all))
	for _, o := range all {
		known := m.object(o)
		present[known.uid] = true
		m.graph.put(known)
	}
	m.graph.keepOnly(m.kind.GroupResource(), present)
	m.listed.Store(true)
	m.changed()
	return nil
}

// Resync does nothing.
func (m *monitor) Resync() error { return nil }

func (m *monitor) object(o any) *object {
	p := o.(*metav1.PartialObjectMetadata)
	known := &object{
		kind: m.kind, namespace: p.Namespace, name: p.Name, uid: p.UID, owners: p.OwnerReferences,
		orphans:    slices.Contains(p.Finalizers, metav1.FinalizerOrphanDependents),
		foreground: slices.Contains(p.Finalizers, metav1.FinalizerDeleteDependents),
	}
	if p.DeletionTimestamp != nil {
		known.seen = m.clock.Now()
	}
	return known
}

var _ cache.ReflectorStore = (*monitor)(nil)
