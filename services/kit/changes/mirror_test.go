package changes

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// shelf is the world as a store with pages of two objects.
type shelf struct{ *world }

func (s shelf) Get(context.Context, services.GetRequest) (services.Object, error) {
	return services.Object{}, errors.New("a mirror never gets")
}

func (s shelf) Revision(context.Context, resource.GroupResource) (int64, error) {
	return 0, errors.New("a mirror never asks for the revision")
}

func (s shelf) List(_ context.Context, r services.ListRequest) (services.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (r.After == "") != (r.Read.Mode == services.MostRecent) || r.Read.Mode == services.Exact && r.Read.Revision != s.through {
		return services.Page{}, fmt.Errorf("unexpected read %+v", r)
	}
	var names []string
	for name := range s.state {
		if name > r.After {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	page := services.Page{Revision: s.through, Epoch: s.epoch}
	for i, name := range names {
		if i == 2 {
			page.Next = names[1]
			break
		}
		page.Objects = append(page.Objects, s.state[name])
	}
	return page, nil
}

var _ services.Reader = shelf{}

// decodeName mirrors names; objects named bad and skip are not mirrored.
func decodeName(o services.Object) (string, error) {
	switch o.Key.Name {
	case "bad":
		return "", errors.New("bad")
	case "skip":
		return "", ErrSkip
	}
	return fmt.Sprintf("%s@%d", o.Key.Name, o.Revision), nil
}

// startMirror runs a mirror and waits until it is ready.
func startMirror(w *world, changed func()) *Mirror[string] {
	w.t.Helper()
	m := NewMirror(MirrorConfig[string]{Source: w.source(), Store: shelf{w}, GroupResource: things, Decode: decodeName, Changed: changed})
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	select {
	case <-m.Ready():
	case <-w.ctx.Done():
		w.t.Fatal("the mirror does not become ready")
	}
	return m
}

func expectMirror(t *testing.T, m *Mirror[string], want string) {
	t.Helper()
	if got := strings.Join(m.List(""), " "); got != want {
		t.Errorf("the mirror holds %q, want %q", got, want)
	}
}

func TestMirrorListsAndFollows(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"c", "a", "bad", "b", "skip"} {
		w.happen(services.Added, name)
	}
	var changed atomic.Int32
	m := startMirror(w, func() { changed.Add(1) })
	expectMirror(t, m, "a@2 b@4 c@1")
	if n := changed.Load(); n != 1 {
		t.Errorf("%d calls of Changed after the list", n)
	}
	w.publish(w.happen(services.Modified, "b"), w.happen(services.Deleted, "c"), w.happen(services.Added, "d"))
	if err := m.WaitFor(w.ctx, 8); err != nil {
		t.Fatal(err)
	}
	expectMirror(t, m, "a@2 b@6 d@8")
	if value, ok := m.Get("ns", "d"); !ok || value != "d@8" {
		t.Errorf("got %q, %v", value, ok)
	}
	awaited := make(chan string, 1)
	go func() {
		value, _ := m.Await(w.ctx, "ns", "e")
		awaited <- value
	}()
	w.publish(w.happen(services.Added, "e"), w.happen(services.Deleted, "e"), w.happen(services.Added, "e"))
	if value := <-awaited; value == "" {
		t.Error("an object that is awaited is never there")
	}
	w.publish(w.happen(services.Deleted, "e"))
	if err := m.WaitFor(w.ctx, 12); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if value, ok := m.Await(ctx, "ns", "e"); ok {
		t.Errorf("a deleted object is %q", value)
	}
	if _, ok := m.Get("other", "d"); ok {
		t.Error("found in another namespace")
	}
	if got := m.List("ns"); len(got) != 3 {
		t.Errorf("listed %v in the namespace", got)
	}
	if got := m.List("n"); len(got) != 0 {
		t.Errorf("listed %v in another namespace", got)
	}
}

func TestMirrorWaitsForQuietRevisions(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	m := startMirror(w, nil)
	now := w.pass(5)
	if err := m.WaitFor(w.ctx, now); err != nil {
		t.Fatal(err)
	}
	if m.Revision() != now {
		t.Errorf("revision %d, want %d", m.Revision(), now)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if err := m.WaitFor(ctx, now+1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestMirrorListsAgainWhenHistoryIsGone(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	w.happen(services.Added, "b")
	m := startMirror(w, nil)
	w.happen(services.Deleted, "a")
	w.happen(services.Added, "c")
	w.forget(4)
	w.publish(w.happen(services.Added, "d"))
	if err := m.WaitFor(w.ctx, 5); err != nil {
		t.Fatal(err)
	}
	expectMirror(t, m, "b@2 c@4 d@5")
}

// TestMirrorListsAgainAfterARestore: after a restore, revisions that the mirror has seen
// are used again for other changes.
func TestMirrorListsAgainAfterARestore(t *testing.T) {
	w := newWorld(t)
	w.epoch = "one"
	for _, name := range []string{"a", "b", "c"} {
		w.happen(services.Added, name)
	}
	m := startMirror(w, nil)
	expectMirror(t, m, "a@1 b@2 c@3")
	w.restore(1, "two")
	for _, name := range []string{"d", "e", "f"} {
		w.happen(services.Added, name)
	}
	w.publishProgress(services.Progress{Through: 4, Floor: 1, Heads: map[resource.GroupResource]int64{things: 4}, Epoch: "two"})
	if err := m.WaitFor(w.ctx, 4); err != nil {
		t.Fatal(err)
	}
	expectMirror(t, m, "a@1 d@2 e@3 f@4")
}

// TestDifference: two contents differ in the objects that were added, replaced or deleted between them.
func TestDifference(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.happen(services.Added, name)
	}
	m := startMirror(w, nil)
	difference := func(was, is View[string]) string {
		var found []string
		Difference(was, is, func(was, is string) { found = append(found, was+">"+is) })
		return strings.Join(found, " ")
	}
	first := m.Now()
	if got := difference(View[string]{}, first); got != ">a@1 >b@2 >c@3" {
		t.Errorf("at first: %q", got)
	}
	w.publish(w.happen(services.Modified, "b"), w.happen(services.Deleted, "c"), w.happen(services.Added, "aa"), w.happen(services.Added, "d"))
	if err := m.WaitFor(w.ctx, 7); err != nil {
		t.Fatal(err)
	}
	if got := difference(first, m.Now()); got != ">aa@6 b@2>b@4 c@3> >d@7" {
		t.Errorf("after changes: %q", got)
	}
	if got := difference(m.Now(), View[string]{}); got != "a@1> aa@6> b@4> d@7>" {
		t.Errorf("at last: %q", got)
	}
	if got := difference(m.Now(), m.Now()); got != "" {
		t.Errorf("of the same: %q", got)
	}
}
