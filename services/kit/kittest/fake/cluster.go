// Package fake is an in-memory cluster for tests of services that read: a store and a
// watch hub, without etcd and NATS. Revisions and order are as in the real ones; it never
// compacts and never fails. Only tests use it.
package fake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
)

// pollInterval is how often followers request a replay, because there is no bus.
const pollInterval = 2 * time.Millisecond

// Cluster holds objects and their changes.
type Cluster struct {
	bus *nats.Conn

	mu       sync.Mutex
	objects  map[resource.Key]services.Object
	history  []services.Change
	lost     map[resource.GroupResource]int64 // revisions of changes that cannot be read
	revision int64
}

// New returns an empty cluster, which is closed at the end of the test.
func New(t testing.TB) *Cluster {
	t.Helper()
	c, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Open returns an empty cluster, which the caller closes.
func Open() (*Cluster, error) {
	// The connection never has a server: followers receive nothing and request replays.
	bus, err := nats.Connect("nats://127.0.0.1:1", nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	return &Cluster{bus: bus, objects: map[resource.Key]services.Object{}, lost: map[resource.GroupResource]int64{}, revision: 1}, nil
}

// Close ends the cluster.
func (c *Cluster) Close() { c.bus.Close() }

// Source returns the source of changes for mirrors.
func (c *Cluster) Source() changes.Source {
	return changes.Source{Bus: c.bus, Hub: c, Silence: pollInterval}
}

// Put creates or replaces an object, given as YAML, and returns the revision.
func (c *Cluster) Put(t testing.TB, gr resource.GroupResource, manifest string) int64 {
	t.Helper()
	var object struct {
		Metadata struct {
			Name, Namespace, UID string
			Labels               map[string]string
		}
	}
	json, err := yaml.YAMLToJSON([]byte(manifest))
	if err == nil {
		err = yaml.Unmarshal(json, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := object.Metadata
	key := resource.Key{GroupResource: gr, Namespace: m.Namespace, Name: m.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := services.Added
	if _, exists := c.objects[key]; exists {
		kind = services.Modified
	}
	return c.note(kind, services.Object{Key: key, UID: m.UID, JSON: json, Labels: m.Labels})
}

// Delete deletes an object and returns the revision.
func (c *Cluster) Delete(key resource.Key) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.note(services.Deleted, c.objects[key])
}

// Damage makes the value of an object unreadable, whether it exists or not, and returns the revision.
func (c *Cluster) Damage(key resource.Key) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	c.objects[key] = services.Object{Key: key, Revision: c.revision, Unreadable: "the value in etcd is damaged"}
	c.lost[key.GroupResource] = c.revision
	return c.revision
}

// Repair makes an object readable at its revision, without a change, as a corrected configuration of the encryption does.
func (c *Cluster) Repair(o services.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[o.Key] = o
}

func (c *Cluster) note(kind services.ChangeType, o services.Object) int64 {
	previous := c.revision
	c.revision++
	o.Revision = c.revision
	if c.objects[o.Key] = o; kind == services.Deleted {
		delete(c.objects, o.Key)
	}
	c.history = append(c.history, services.Change{Type: kind, Previous: previous, Object: o})
	return c.revision
}

// Get implements services.Reader.
func (c *Cluster) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.objects[r.Key]; ok {
		return o, o.Err()
	}
	return services.Object{}, services.NotFound(r.Key.Group, r.Key.Resource, r.Key.Name)
}

// List implements services.Reader, always on one page.
func (c *Cluster) List(_ context.Context, r services.ListRequest) (services.Page, error) {
	selector, err := resource.ParseSelector(r.LabelSelector, r.FieldSelector)
	if err != nil {
		return services.Page{}, services.BadRequest("%v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	page := services.Page{Revision: c.revision}
	for key, o := range c.objects {
		if key.GroupResource != r.GroupResource || r.Namespace != "" && key.Namespace != r.Namespace {
			continue
		}
		if err := o.Err(); err != nil && !r.WithUnreadable {
			return services.Page{}, err
		}
		if o.Unreadable != "" || selector.Matches(key, o.Labels, o.Fields) {
			page.Objects = append(page.Objects, o)
		}
	}
	place := func(o services.Object) string { return o.Key.Namespace + "/" + o.Key.Name }
	slices.SortFunc(page.Objects, func(a, b services.Object) int { return strings.Compare(place(a), place(b)) })
	page.Objects = slices.DeleteFunc(page.Objects, func(o services.Object) bool { return place(o) <= r.After })
	if r.Limit > 0 && len(page.Objects) > r.Limit {
		page.Remaining, page.Objects = int64(len(page.Objects)-r.Limit), page.Objects[:r.Limit]
		page.Next = place(page.Objects[r.Limit-1])
	}
	return page, nil
}

// Revision implements services.Reader.
func (c *Cluster) Revision(context.Context, resource.GroupResource) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision, nil
}

// Replay implements services.WatchHub.
func (c *Cluster) Replay(_ context.Context, r services.ReplayRequest) (services.Replay, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.After < c.lost[r.GroupResource] {
		return services.Replay{}, services.Expired("a change cannot be read")
	}
	replay := services.Replay{Through: c.revision}
	for _, change := range c.history {
		if change.Object.Key.GroupResource == r.GroupResource && change.Object.Revision > r.After {
			replay.Changes = append(replay.Changes, change)
		}
	}
	return replay, nil
}

// Keys implements services.WatchHub. It returns none, because nothing is sealed.
func (c *Cluster) Keys(context.Context, services.KeysRequest) (services.Keys, error) {
	return services.Keys{}, nil
}

var (
	_ services.Reader   = (*Cluster)(nil)
	_ services.WatchHub = (*Cluster)(nil)
)
