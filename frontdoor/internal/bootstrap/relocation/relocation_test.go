package relocation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap/relocation"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

var builtIn = sync.OnceValues(func() (*catalogue.Catalogue, error) {
	return catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
})

// kept returns the storage type of a definition's objects.
func kept(group, plural string) *catalogue.Type {
	return &catalogue.Type{Custom: true, Key: resource.GroupResource{Group: group, Resource: plural, Custom: true}}
}

var widgets = kept("example.com", "widgets")

func mover(t *testing.T, store services.Store) relocation.Mover {
	t.Helper()
	types, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	return relocation.Mover{Store: store, Types: types, Log: slog.New(slog.DiscardHandler), Content: content}
}

// content returns the object without its resourceVersion.
func content(o services.Object, _ *catalogue.Type) (services.Content, error) {
	raw := string(o.JSON)
	from := strings.Index(raw, `"resourceVersion"`)
	to := from + strings.Index(raw[from:], ",") + 1
	return services.Content{JSON: []byte(raw[:from] + raw[to:]), UID: o.UID, Labels: o.Labels, Fields: o.Fields}, nil
}

func former(group, plural, namespace, name string) resource.Key {
	return resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: plural}, Namespace: namespace, Name: name}
}

func put(t *testing.T, store services.Store, key resource.Key, value string) services.Object {
	t.Helper()
	o, err := store.Create(t.Context(), services.CreateRequest{Key: key, Content: services.Content{
		JSON: fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":"uid-%s"},"value":%q}`, key.Name, key.Name, value), UID: "uid-" + key.Name,
		Labels: map[string]string{"value": value}}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func list(t *testing.T, store services.Store, gr resource.GroupResource) (found []string) {
	t.Helper()
	page, err := store.List(t.Context(), services.ListRequest{GroupResource: gr})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Objects {
		found = append(found, o.Key.Namespace+"/"+o.Key.Name+"="+o.Labels["value"])
		if o.UID != "uid-"+o.Key.Name || !strings.Contains(string(o.JSON), `"value":"`+o.Labels["value"]+`"`) {
			t.Errorf("%s: %s", o.UID, o.JSON)
		}
	}
	return found
}

// fill stores the objects of an earlier release.
func fill(t *testing.T, store services.Store) {
	t.Helper()
	for _, place := range []string{"/one", "a/two", "a/three", "b/two"} {
		namespace, name, _ := strings.Cut(place, "/")
		put(t, store, former("example.com", "widgets", namespace, name), "1")
	}
}

const filled = "/one=1 a/three=1 a/two=1 b/two=1"

// mustBeMoved checks the store after a move.
func mustBeMoved(t *testing.T, store services.Store) {
	t.Helper()
	if left := list(t, store, former("example.com", "widgets", "", "").GroupResource); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if moved := strings.Join(list(t, store, widgets.Key), " "); moved != filled {
		t.Errorf("moved: %v", moved)
	}
}

func TestMove(t *testing.T) {
	store := fake.New(t).Store()
	m := mover(t, store)
	if since, err := m.Run(t.Context(), []*catalogue.Type{widgets}); err != nil || since != 0 {
		t.Fatal("with nothing to do:", since, err)
	}
	fill(t, store)
	since, err := m.Run(t.Context(), []*catalogue.Type{widgets})
	if err != nil {
		t.Fatal(err)
	}
	mustBeMoved(t, store)
	if newest, _ := store.Revision(t.Context(), resource.GroupResource{}); since != newest {
		t.Errorf("objects are where they are since %d, and the last write was %d", since, newest)
	}
	again, err := m.Run(t.Context(), []*catalogue.Type{widgets})
	if newest, _ := store.Revision(t.Context(), resource.GroupResource{}); err != nil || again != since || newest != since {
		t.Errorf("the second time: %d, %v, %d writes", again, err, newest-since)
	}
}

// TestBuiltInObjectsStay: objects of built-in types and the service's own data are not
// moved if definitions have their names.
func TestBuiltInObjectsStay(t *testing.T) {
	store := fake.New(t).Store()
	m := mover(t, store)
	types := []*catalogue.Type{kept("portico", "sealing-keys"), kept("portico", "cluster-ips"), kept("", "pods")}
	for _, g := range m.Types.Groups() {
		for _, v := range g.Versions {
			for _, b := range v.Types {
				types = append(types, kept(g.Name, b.Resource), kept(b.Key.Group, b.Key.Resource))
			}
		}
	}
	seen := map[resource.GroupResource]bool{}
	for _, custom := range types {
		gr := custom.Key
		if gr.Custom = false; !seen[gr] {
			put(t, store, resource.Key{GroupResource: gr, Name: "a"}, "built in")
		}
		seen[gr] = true
	}
	before, _ := store.Revision(t.Context(), resource.GroupResource{})
	if _, err := m.Run(t.Context(), types); err != nil {
		t.Fatal(err)
	}
	if after, _ := store.Revision(t.Context(), resource.GroupResource{}); after != before {
		t.Errorf("%d writes", after-before)
	}
}

// crashing is a store that simulates a crash of the process at one write: before it, or
// after it and before its response.
type crashing struct {
	services.Store
	at    int64
	after bool
	count atomic.Int64
}

var errCrash = errors.New("crash")

func (c *crashing) step(write func() (services.Object, error)) (services.Object, error) {
	n := c.count.Add(1)
	if n > c.at || n == c.at && !c.after {
		return services.Object{}, errCrash
	}
	object, err := write()
	if n == c.at {
		return services.Object{}, errCrash
	}
	return object, err
}

func (c *crashing) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	return c.step(func() (services.Object, error) { return c.Store.Create(ctx, r) })
}

func (c *crashing) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	return c.step(func() (services.Object, error) { return c.Store.Update(ctx, r) })
}

func (c *crashing) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	return c.step(func() (services.Object, error) { return c.Store.Delete(ctx, r) })
}

// TestCrashes simulates a crash at every write of a move, and then resumes.
func TestCrashes(t *testing.T) {
	whole := &crashing{Store: fake.New(t).Store(), at: 1 << 40}
	fill(t, whole.Store)
	if _, err := mover(t, whole).Run(t.Context(), []*catalogue.Type{widgets}); err != nil || whole.count.Load() < 10 {
		t.Fatal(whole.count.Load(), err)
	}
	for at := range whole.count.Load() {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, done %t", at+1, after), func(t *testing.T) {
				store := fake.New(t).Store()
				fill(t, store)
				if _, err := mover(t, &crashing{Store: store, at: at + 1, after: after}).Run(t.Context(), []*catalogue.Type{widgets}); !errors.Is(err, errCrash) {
					t.Fatal(err)
				}
				since, err := mover(t, store).Run(t.Context(), []*catalogue.Type{widgets})
				if err != nil || since == 0 {
					t.Fatal(since, err)
				}
				mustBeMoved(t, store)
			})
		}
	}
}

// halting blocks before one request until it is released, like a slow front door.
type halting struct {
	services.Store
	reached, release chan struct{}
	once             sync.Once
}

func (h *halting) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	if len(r.Requires) > 0 {
		h.once.Do(func() {
			close(h.reached)
			<-h.release
		})
	}
	return h.Store.Create(ctx, r)
}

// TestWhatIsDeletedStaysDeleted: a slow front door does not restore an object that a client
// of a faster one has deleted since.
func TestWhatIsDeletedStaysDeleted(t *testing.T) {
	store := fake.New(t).Store()
	put(t, store, former("example.com", "widgets", "a", "two"), "1")
	slow := &halting{Store: store, reached: make(chan struct{}), release: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := mover(t, slow).Run(t.Context(), []*catalogue.Type{widgets})
		done <- err
	}()
	<-slow.reached
	if _, err := mover(t, store).Run(t.Context(), []*catalogue.Type{widgets}); err != nil {
		t.Fatal(err)
	}
	key := resource.Key{GroupResource: widgets.Key, Namespace: "a", Name: "two"}
	if _, err := store.Delete(t.Context(), services.DeleteRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	close(slow.release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if back := list(t, store, widgets.Key); len(back) > 0 {
		t.Errorf("back again: %v", back)
	}
}

func TestManyAtATime(t *testing.T) {
	store := fake.New(t).Store()
	fill(t, store)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if since, err := mover(t, store).Run(t.Context(), []*catalogue.Type{widgets}); err != nil || since == 0 {
				t.Error(since, err)
			}
		})
	}
	group.Wait()
	mustBeMoved(t, store)
}

// TestTheLaterOfTwoStays: a write by a front door of an earlier release to an object that
// was already copied is not lost, and a later write to the copy is not overwritten.
func TestTheLaterOfTwoStays(t *testing.T) {
	store := fake.New(t).Store()
	copied := put(t, store, resource.Key{GroupResource: widgets.Key, Namespace: "a", Name: "x"}, "copy")
	put(t, store, former("example.com", "widgets", "a", "x"), "later")
	put(t, store, former("example.com", "widgets", "a", "y"), "earlier")
	put(t, store, resource.Key{GroupResource: widgets.Key, Namespace: "a", Name: "y"}, "later")
	if _, err := mover(t, store).Run(t.Context(), []*catalogue.Type{widgets}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(list(t, store, widgets.Key), " "); got != "a/x=later a/y=later" {
		t.Errorf("%v, after the copy at %d", got, copied.Revision)
	}
}
