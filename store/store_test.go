package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

var pods = resource.GroupResource{Resource: "pods"}

func pod(name string) resource.Key {
	return resource.Key{GroupResource: pods, Namespace: "default", Name: name}
}

func content(name, value string) services.Content {
	return services.Content{
		JSON: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"default"},"spec":{"value":%q}}`, name, value),
		UID:  "uid", Labels: map[string]string{"value": value},
	}
}

func create(t testing.TB, s *Store, name string) services.Object {
	t.Helper()
	o, err := s.Create(t.Context(), services.CreateRequest{Key: pod(name), Content: content(name, "0")})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func update(t testing.TB, s *Store, o services.Object, value string) services.Object {
	t.Helper()
	o, err := s.Update(t.Context(), services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: content(o.Key.Name, value)})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func list(t testing.TB, s *Store, r services.ListRequest) services.Page {
	t.Helper()
	r.GroupResource = pods
	page, err := s.List(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func compact(t testing.TB, client *clientv3.Client, revision int64) {
	t.Helper()
	if _, err := client.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
}

func exactly(revision int64) services.Read {
	return services.Read{Mode: services.Exact, Revision: revision}
}

func TestAWriteIsSeenAtEveryReplica(t *testing.T) {
	client := openEtcd(t)
	a, b := replica(t, client), replica(t, client)
	o := create(t, a, "a")
	for i := range 100 {
		o = update(t, a, o, fmt.Sprint(i))
		for _, read := range []services.Read{{}, {Mode: services.NotOlderThan, Revision: o.Revision}} {
			got, err := b.Get(t.Context(), services.GetRequest{Key: o.Key, Read: read})
			if err != nil || got.Revision != o.Revision {
				t.Fatalf("read %d, %v after a write at %d", got.Revision, err, o.Revision)
			}
		}
	}
}

func TestRevisionsThatChangeNoObjectAreReached(t *testing.T) {
	for name, open := range map[string]func(testing.TB) *clientv3.Client{"in process": openEtcd, "network": dialEtcd} {
		t.Run(name, func(t *testing.T) {
			client := open(t)
			s := replica(t, client)
			o := create(t, s, "a")
			for range 10 {
				put, err := client.Put(t.Context(), "/portico/elsewhere", "")
				if err != nil {
					t.Fatal(err)
				}
				// If the store did not ask etcd about its progress, it would learn of it after 30 s.
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				page, err := s.List(ctx, services.ListRequest{GroupResource: pods})
				cancel()
				if err != nil || page.Revision < put.Header.Revision || page.Objects[0].Revision != o.Revision {
					t.Fatalf("after a write elsewhere at %d: %+v, %v", put.Header.Revision, page, err)
				}
			}
		})
	}
}

func TestReadsNeverGoBack(t *testing.T) {
	client := openEtcd(t)
	a, b := replica(t, client), replica(t, client)
	o := create(t, a, "a")
	key := o.Key
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var last int64
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				got, err := []*Store{a, b}[i%2].Get(t.Context(), services.GetRequest{Key: key})
				if err != nil || got.Revision < last {
					t.Errorf("read %d, %v after %d", got.Revision, err, last)
					return
				}
				last = got.Revision
			}
		})
	}
	for i := range 200 {
		o = update(t, a, o, fmt.Sprint(i))
	}
	close(stop)
	readers.Wait()
}

func TestPagesComeFromMemoryAfterACompaction(t *testing.T) {
	client := openEtcd(t)
	a, b := replica(t, client), replica(t, client)
	x, y := create(t, a, "x"), create(t, a, "y")
	first := list(t, a, services.ListRequest{Limit: 1})
	update(t, a, y, "later")
	compact(t, client, update(t, a, x, "later").Revision)
	list(t, b, services.ListRequest{}) // waits until b has caught up
	rest := services.ListRequest{GroupResource: pods, After: first.Next, Read: exactly(first.Revision)}
	page := list(t, a, rest)
	if len(page.Objects) != 1 || page.Objects[0].Revision != y.Revision || page.Revision != first.Revision {
		t.Errorf("the second page: %+v", page)
	}
	if _, err := b.List(t.Context(), rest); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("at the other replica: %v, want Expired", err)
	}
}

func TestHistoryIsReadFromEtcd(t *testing.T) {
	client := openEtcd(t)
	s := replica(t, client)
	var newest services.Object
	for i := range pageObjects + 10 {
		newest = create(t, s, fmt.Sprintf("p%04d", i))
	}
	past := newest.Revision
	update(t, s, newest, "later")
	if loaded := replica(t, client).main.mirror.Status(); loaded.Objects != pageObjects+10 || loaded.Revision != past+1 {
		t.Errorf("a new replica begins with %+v", loaded)
	}
	first := list(t, s, services.ListRequest{Read: exactly(past), Namespace: "default"})
	if len(first.Objects) != pageObjects || first.Remaining != 10 || first.Revision != past {
		t.Fatalf("first page: %d objects, %d remaining, at %d", len(first.Objects), first.Remaining, first.Revision)
	}
	second := list(t, s, services.ListRequest{Read: exactly(past), Namespace: "default", After: first.Next})
	if n := len(second.Objects); n != 10 || second.Next != "" || second.Objects[n-1].Revision != past {
		t.Errorf("second page: %d objects, next %q", n, second.Next)
	}
	selected := list(t, s, services.ListRequest{Read: exactly(past), LabelSelector: "value=later"})
	if len(selected.Objects) != 0 || selected.Next != "" {
		t.Errorf("selected by a label of later: %+v", selected)
	}
	named := list(t, s, services.ListRequest{Read: exactly(past), Namespace: "default", FieldSelector: "metadata.name=p0505"})
	if len(named.Objects) != 1 {
		t.Errorf("selected by name: %d objects", len(named.Objects))
	}
}

func TestPreconditionsAreCheckedOnWhatEtcdHolds(t *testing.T) {
	client := openEtcd(t)
	cut := newCutWatch(client.Watcher)
	a, b := replica(t, client), replica(t, withWatcher(client, cut))
	o := create(t, a, "a")
	if _, err := b.Get(t.Context(), services.GetRequest{Key: o.Key}); err != nil {
		t.Fatal(err)
	}
	cut.off()
	newer := update(t, a, o, "1")
	_, err := b.Delete(t.Context(), services.DeleteRequest{Key: o.Key, Revision: o.Revision})
	if !services.IsReason(err, services.ReasonConflict) {
		t.Errorf("deleting what has changed: %v", err)
	}
	deleted, err := b.Delete(t.Context(), services.DeleteRequest{Key: o.Key, UID: o.UID})
	if err != nil || deleted.Revision <= newer.Revision || deleted.Labels["value"] != "1" {
		t.Errorf("deleted %+v, %v", deleted, err)
	}
}

func TestACutWatchServesNothingOld(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted=%v", compacted), func(t *testing.T) {
			client := openEtcd(t)
			cut := newCutWatch(client.Watcher)
			writer, s := replica(t, client), replica(t, withWatcher(client, cut))
			gone, stays := create(t, writer, "gone"), create(t, writer, "stays")
			before := list(t, s, services.ListRequest{Limit: 1})
			cut.off()
			stays = update(t, writer, stays, "1")
			deleted, err := writer.Delete(t.Context(), services.DeleteRequest{Key: gone.Key})
			if err != nil {
				t.Fatal(err)
			}
			if compacted {
				compact(t, client, deleted.Revision)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := s.Get(ctx, services.GetRequest{Key: stays.Key}); !services.IsReason(err, services.ReasonTimeout) {
				t.Errorf("reading while etcd cannot be followed: %v, want a Timeout", err)
			}
			cut.on()
			page := list(t, s, services.ListRequest{})
			if len(page.Objects) != 1 || page.Objects[0].Revision != stays.Revision {
				t.Errorf("afterwards: %+v", page)
			}
			rest := list(t, s, services.ListRequest{After: before.Next, Read: exactly(before.Revision)})
			if len(rest.Objects) != 1 || rest.Objects[0].Labels["value"] != "0" {
				t.Errorf("the list begun before goes on with %+v", rest)
			}
			if loads := s.main.mirror.Status().Loads; (loads == 2) != compacted {
				t.Errorf("%d loads", loads)
			}
		})
	}
}

// cutWatch is a Watcher whose watches a test can end and suspend.
type cutWatch struct {
	clientv3.Watcher
	mu   sync.Mutex
	open chan struct{} // closed while watches may run
	end  []context.CancelFunc
}

func newCutWatch(w clientv3.Watcher) *cutWatch {
	c := &cutWatch{Watcher: w, open: make(chan struct{})}
	close(c.open)
	return c
}

func (c *cutWatch) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	c.mu.Lock()
	open := c.open
	ctx, cancel := context.WithCancel(ctx)
	c.end = append(c.end, cancel)
	c.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
	return c.Watcher.Watch(ctx, key, opts...)
}

// off ends all watches; new ones block until on.
func (c *cutWatch) off() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = make(chan struct{})
	for _, end := range c.end {
		end()
	}
	c.end = nil
}

func (c *cutWatch) on() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.open)
}

// withWatcher returns the client with another Watcher.
func withWatcher(client *clientv3.Client, w clientv3.Watcher) *clientv3.Client {
	other := clientv3.NewCtxClient(client.Ctx())
	other.KV, other.Watcher = client.KV, w
	return other
}
