// Package garbagecollector deletes objects whose owners are all gone, according to their
// ownerReferences. It also implements foreground deletion, where an owner is deleted after
// its dependents, and orphaning. It never deletes based on watch events alone: that an
// owner is absent is confirmed by a read, and a dependent is deleted with the
// preconditions of the state that was read. It serves "Two-phase deletion of a resource"
// of the specification.
package garbagecollector

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Name is the controller's name in --controllers.
const Name = "garbagecollector"

const (
	// workers is how many objects are examined, and so deleted, concurrently.
	workers = 20
	// releasesAtOnce is how many dependents of an owner are orphaned concurrently.
	releasesAtOnce = 8
	// refreshEvery is how often discovery is repeated. Changes of custom types trigger
	// it at once.
	refreshEvery = 30 * time.Second
	// recheckAfter is when it is repeated once more, because the API's discovery may have
	// been stale.
	recheckAfter = time.Second
	// listWithin is how long deletions with finalizers wait for the first list of a type.
	listWithin = 30 * time.Second
	// absentOwners is the size of the cache of absent owners.
	absentOwners = 1000
)

// Config configures the controller.
type Config struct {
	Metadata   dynamic.Interface
	Inventory  *inventory.Source
	Vocabulary vocabulary.Vocabulary
	Clock      clock.Clock
	Log        *slog.Logger
}

// Controller is the garbage collector.
type Controller struct {
	Config
	graph   *graph
	queue   *worker.Queue[types.UID]
	refresh chan struct{} // holds a token when discovery has to be repeated
	served  atomic.Pointer[inventory.Inventory]
	absent  *lru.Cache // of reference

	mu       sync.Mutex
	monitors map[schema.GroupResource]*monitor
}

// New returns a controller. It follows nothing before it runs.
func New(config Config) *Controller {
	c := &Controller{
		Config: config, queue: worker.NewQueue[types.UID](Name, config.Log), refresh: make(chan struct{}, 1),
		absent: lru.New(absentOwners), monitors: map[schema.GroupResource]*monitor{},
	}
	c.graph = newGraph(c.queue.Add)
	return c
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { c.followTypes(ctx) })
	c.queue.Run(ctx, workers, c.reconcile)
	group.Wait()
	return nil
}

// Complete reports whether the graph holds all objects of all types, except of types that cannot be
// listed: deletions do not wait for these for ever.
func (c *Controller) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	complete := c.served.Load() != nil
	for kind, m := range c.monitors {
		switch {
		case m.listed.Load() || m.skipped:
		case c.Clock.Since(m.started) < listWithin:
			complete = false
		default:
			m.skipped = true
			c.Log.Warn("the objects of a type cannot be read: deletions no longer wait for it", "controller", Name, "type", kind, "after", listWithin)
		}
	}
	return complete
}

// followTypes keeps one monitor per type as types are added and removed.
func (c *Controller) followTypes(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for delay := time.Duration(0); ; {
		next := refreshEvery
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(delay):
		case <-c.refresh:
			next = recheckAfter
		}
		if served, err := c.Inventory.Read(ctx); err == nil {
			c.follow(ctx, served, &group)
		} else if ctx.Err() == nil {
			c.Log.Warn("discovery failed", "controller", Name, "error", err)
			next = recheckAfter
		}
		delay = next
	}
}

// follow starts monitors of new types and stops those of removed types. A type whose
// discovery failed keeps its monitor.
func (c *Controller) follow(ctx context.Context, served *inventory.Inventory, group *sync.WaitGroup) {
	c.served.Store(served)
	c.mu.Lock()
	defer c.mu.Unlock()
	present := map[schema.GroupResource]bool{}
	for _, t := range served.Types {
		kind := t.GroupResource()
		if !t.Can("delete", "list", "watch") || kind == ignored() {
			continue
		}
		present[kind] = true
		if known := c.monitors[kind]; known == nil || known.kind.GroupVersionResource != t.GroupVersionResource {
			c.start(ctx, t, group)
		}
	}
	for _, gv := range served.Stale {
		for kind, m := range c.monitors {
			if m.kind.GroupVersion() == gv {
				present[kind] = true
			}
		}
	}
	for kind, m := range c.monitors {
		if !present[kind] {
			c.Log.Debug("stopped following a type", "controller", Name, "type", kind)
			m.stop()
			delete(c.monitors, kind)
		}
	}
}

// start starts a monitor, and replaces one of another version of the type.
func (c *Controller) start(ctx context.Context, t *inventory.Type, group *sync.WaitGroup) {
	kind := t.GroupResource()
	c.Log.Debug("started following a type", "controller", Name, "type", kind)
	if known := c.monitors[kind]; known != nil {
		known.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	m := &monitor{kind: t, graph: c.graph, clock: c.Clock, started: c.Clock.Now(), stop: stop, changed: func() {}}
	if kind == c.customTypes() {
		m.changed = c.typesChanged
	}
	c.monitors[kind] = m
	group.Go(func() {
		m.run(ctx, c.Inventory.Follow(t))
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.monitors[kind] == nil {
			c.graph.forget(kind)
		}
	})
}

// typesChanged triggers discovery.
func (c *Controller) typesChanged() {
	select {
	case c.refresh <- struct{}{}:
	default:
	}
}

func (c *Controller) customTypes() schema.GroupResource {
	return schema.GroupResource{Group: c.Vocabulary.Group("apiextensions."), Resource: "customresourcedefinitions"}
}

// ignored is the type that is not followed: events are many, short-lived and own
// nothing.
func ignored() schema.GroupResource { return schema.GroupResource{Resource: "events"} }
