package backends

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// counted is the store and the hub behind the front door. It counts reads, and its hub can be
// cut off.
type counted struct {
	services.Store
	cluster *fake.Cluster
	reads   atomic.Int64
	cut     atomic.Bool
	epoch   atomic.Value // string
	failing atomic.Bool  // Heads fails
	never   atomic.Bool  // no copy can have the newest state
}

func (c *counted) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, r)
}

func (c *counted) List(ctx context.Context, r services.ListRequest) (services.Page, error) {
	c.reads.Add(1)
	return c.Store.List(ctx, r)
}

func (c *counted) Heads(ctx context.Context, types []resource.GroupResource) ([]services.Head, error) {
	if c.failing.Load() {
		return nil, errors.New("not implemented")
	}
	epoch, _ := c.epoch.Load().(string)
	heads := make([]services.Head, len(types))
	for i, gr := range types {
		replay, err := c.cluster.Replay(ctx, services.ReplayRequest{GroupResource: gr})
		if err != nil {
			return heads, err
		}
		if n := len(replay.Changes); n > 0 {
			heads[i].Changed = replay.Changes[n-1].Object.Revision
		}
	}
	for i, gr := range types {
		var err error
		if heads[i].Revision, err = c.cluster.Revision(ctx, gr); err != nil {
			return nil, err
		}
		heads[i].Epoch = epoch
		if c.never.Load() {
			heads[i].Changed = math.MaxInt64
		}
	}
	return heads, nil
}

func (c *counted) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	if c.cut.Load() {
		return services.Replay{}, services.Unavailable("the hub is away")
	}
	return c.cluster.Replay(ctx, r)
}

func (c *counted) Keys(ctx context.Context, r services.KeysRequest) (services.Keys, error) {
	return c.cluster.Keys(ctx, r)
}

var things = resource.GroupResource{Group: "g.example", Resource: "things"}

func thing(namespace, name string) resource.Key {
	return resource.Key{GroupResource: things, Namespace: namespace, Name: name}
}

// behind returns a Store that runs, and what is behind it.
func behind(t *testing.T, bytes int64) (*Store, *counted) {
	t.Helper()
	cluster := fake.New(t)
	c := &counted{cluster: cluster, Store: cluster.Store()}
	source := cluster.Source()
	source.Hub = c
	s := NewStore(StoreConfig{Store: c, Heads: c, Changes: source, Bytes: bytes, Log: slog.New(slog.DiscardHandler)})
	go func() { _ = s.Run(t.Context()) }() // it returns nil when the test ends
	return s, c
}

// copied reads until a copy answers.
func copied(t *testing.T, s *Store, c *counted) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		before := c.reads.Load()
		if _, err := s.List(t.Context(), services.ListRequest{GroupResource: things}); err != nil {
			t.Fatal(err)
		}
		if c.reads.Load() == before && s.copies.ready(things) != nil {
			return
		}
	}
	t.Fatal("the type is never copied")
}

// TestCopiesAnswerLikeTheStore: lists and gets of every kind are the same from a copy as from
// the store.
func TestCopiesAnswerLikeTheStore(t *testing.T) {
	s, c := behind(t, 1<<20)
	for _, namespace := range []string{"a", "a-b", "a.c", "ab", "b"} {
		for i := range 5 {
			c.cluster.Put(t, things, fmt.Sprintf(`{metadata: {name: n%d, namespace: %s, labels: {odd: "%t"}}}`, i, namespace, i%2 == 1))
		}
	}
	copied(t, s, c)
	before := c.reads.Load()
	for _, r := range []services.ListRequest{{}, {Namespace: "a"}, {Namespace: "none"}, {LabelSelector: "odd=true"},
		{Namespace: "a", LabelSelector: "odd!=true"}, {FieldSelector: "metadata.name=n1"},
		{Read: services.Read{Mode: services.AnyRevision}}, {Read: services.Read{Mode: services.NotOlderThan, Revision: 3}}} {
		r.GroupResource = things
		got, err := s.List(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if n := c.reads.Load(); n != before {
			t.Errorf("%+v went to the store", r)
		}
		want, err := c.Store.List(t.Context(), r)
		if err != nil || len(got.Objects) != len(want.Objects) || got.Revision != want.Revision || got.Next != "" {
			t.Errorf("%+v: %d objects at %d, want %d at %d, %v", r, len(got.Objects), got.Revision, len(want.Objects), want.Revision, err)
			continue
		}
		for i := range want.Objects {
			if !reflect.DeepEqual(got.Objects[i], want.Objects[i]) {
				t.Errorf("%+v: object %d is %s, want %s", r, i, got.Objects[i].Key, want.Objects[i].Key)
			}
		}
	}
	if o, err := s.Get(t.Context(), services.GetRequest{Key: thing("a", "n1")}); err != nil || o.Key != thing("a", "n1") {
		t.Errorf("got %+v, %v", o, err)
	}
	if _, err := s.Get(t.Context(), services.GetRequest{Key: thing("a", "none")}); !services.IsReason(err, services.ReasonNotFound) {
		t.Errorf("got %v", err)
	}
	if n := c.reads.Load(); n != before {
		t.Error("a get went to the store")
	}
	if _, err := s.List(t.Context(), services.ListRequest{GroupResource: things, LabelSelector: "!!"}); !services.IsReason(err, services.ReasonBadRequest) {
		t.Errorf("a selector that does not parse: %v", err)
	}
	for _, r := range []services.ListRequest{{Limit: 3}, {After: "a/n1"}} {
		r.GroupResource = things
		if _, err := s.List(t.Context(), r); err != nil || c.reads.Load() == before {
			t.Errorf("a list in chunks did not go to the store: %v", err)
		}
	}
}

// TestCopiesAreNewest: a most-recent read that begins after a write was acknowledged sees it,
// by whomever it was written, also while the copy is cut off from changes.
func TestCopiesAreNewest(t *testing.T) {
	s, c := behind(t, 1<<20)
	put := func(value int) {
		c.cluster.Put(t, things, fmt.Sprintf(`{metadata: {name: x, namespace: a, labels: {value: "%d"}}}`, value))
	}
	put(0)
	copied(t, s, c)
	var acknowledged atomic.Int64
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 8 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				least := acknowledged.Load()
				var value int64
				o, err := s.Get(t.Context(), services.GetRequest{Key: thing("a", "x")})
				if _, scan := fmt.Sscan(o.Labels["value"], &value); err != nil || scan != nil || value < least {
					t.Errorf("read %d after %d was written, %v, %v", value, least, err, scan)
				}
				page, err := s.List(t.Context(), services.ListRequest{GroupResource: things})
				if err != nil || page.Revision < o.Revision || page.Objects[0].Revision < o.Revision {
					t.Errorf("a list at %d after revision %d was read, %v", page.Revision, o.Revision, err)
				}
			}
		})
	}
	for value := 1; value <= 300; value++ {
		c.cut.Store(value%100 < 20)
		put(value)
		acknowledged.Store(int64(value))
		<-time.After(time.Millisecond)
	}
	close(done)
	readers.Wait()
}

// TestReadsWithoutCopies: reads go to the store when heads cannot be read, when another history
// of etcd begins, and when the objects do not fit.
func TestReadsWithoutCopies(t *testing.T) {
	list := func(t *testing.T, s *Store, mode services.ReadMode) services.Page {
		t.Helper()
		page, err := s.List(t.Context(), services.ListRequest{GroupResource: things, Read: services.Read{Mode: mode}})
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	t.Run("no heads", func(t *testing.T) {
		s, c := behind(t, 1<<20)
		c.cluster.Put(t, things, `{metadata: {name: x, namespace: a}}`)
		copied(t, s, c)
		c.failing.Store(true)
		before := c.reads.Load()
		for range 3 {
			if page := list(t, s, services.MostRecent); len(page.Objects) != 1 {
				t.Errorf("got %+v", page)
			}
		}
		if n := c.reads.Load() - before; n != 3 {
			t.Errorf("%d of 3 reads went to the store", n)
		}
	})
	t.Run("no copy can be newest", func(t *testing.T) {
		s, c := behind(t, 1<<20)
		c.cluster.Put(t, things, `{metadata: {name: x, namespace: a}}`)
		copied(t, s, c)
		c.never.Store(true)
		before, began := c.reads.Load(), time.Now()
		n := int64(0)
		for ; n < 400; n++ {
			list(t, s, services.MostRecent)
		}
		if took := time.Since(began); took > time.Duration(n)*lagWait {
			t.Errorf("%d reads took %v: they wait for a revision that no copy reaches", n, took)
		}
		if to := c.reads.Load() - before; to != n {
			t.Errorf("%d of %d reads went to the store", to, n)
		}
	})
	t.Run("another history", func(t *testing.T) {
		s, c := behind(t, 1<<20)
		c.epoch.Store("one")
		c.cluster.Put(t, things, `{metadata: {name: x, namespace: a}}`)
		copied(t, s, c)
		c.epoch.Store("two")
		before := c.reads.Load()
		list(t, s, services.MostRecent)
		list(t, s, services.AnyRevision)
		if n := c.reads.Load() - before; n < 2 {
			t.Errorf("%d of 2 reads went to the store", n)
		}
	})
	t.Run("too large", func(t *testing.T) {
		s, c := behind(t, 10*objectOverhead)
		for i := range 20 {
			c.cluster.Put(t, things, fmt.Sprintf(`{metadata: {name: x%d, namespace: a}}`, i))
		}
		for range 200 {
			if page := list(t, s, services.MostRecent); len(page.Objects) != 20 {
				t.Fatalf("%d objects", len(page.Objects))
			}
		}
		if s.copies.ready(things) != nil {
			t.Error("it is copied")
		}
	})
	t.Run("grown too large", func(t *testing.T) {
		s, c := behind(t, 10*objectOverhead)
		c.cluster.Put(t, things, `{metadata: {name: x, namespace: a}}`)
		copied(t, s, c)
		for i := range 20 {
			c.cluster.Put(t, things, fmt.Sprintf(`{metadata: {name: x%d, namespace: a}}`, i))
		}
		list(t, s, services.MostRecent)
		s.copies.bound()
		if s.copies.ready(things) != nil {
			t.Error("it is still copied")
		}
	})
}

// TestOwnWrites: an update that starts from what this front door has just written does not
// conflict, even if the copy has not received that.
func TestOwnWrites(t *testing.T) {
	s, c := behind(t, 1<<20)
	key := thing("a", "x")
	content := services.Content{JSON: []byte(`{"metadata":{"name":"x","namespace":"a"}}`)}
	o, err := s.Create(t.Context(), services.CreateRequest{Key: key, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	copied(t, s, c)
	c.cut.Store(true)
	for range 10 {
		if o, err = s.Update(t.Context(), services.UpdateRequest{Key: key, Revision: o.Revision, Content: content}); err != nil {
			t.Fatal(err)
		}
		read, err := s.Get(t.Context(), services.GetRequest{Key: key, Read: services.Read{Mode: services.AnyRevision}})
		if err != nil || read.Revision != o.Revision {
			t.Errorf("read revision %d, %v; wrote %d", read.Revision, err, o.Revision)
		}
	}
	if _, err := s.Delete(t.Context(), services.DeleteRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), services.GetRequest{Key: key}); !services.IsReason(err, services.ReasonNotFound) {
		t.Errorf("after its deletion: %v", err)
	}
}
