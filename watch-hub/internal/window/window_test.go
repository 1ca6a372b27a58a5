package window

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

func change(revision int64, typ string, bytes int) services.Change {
	key := resource.Key{GroupResource: resource.GroupResource{Resource: typ}, Name: "a"}
	return services.Change{Type: services.Modified, Object: services.Object{
		Key: key, Revision: revision, JSON: []byte(strings.Repeat("x", bytes)),
	}}
}

func revisions(changes []services.Change) string {
	var list []int64
	for _, c := range changes {
		list = append(list, c.Object.Revision)
	}
	return fmt.Sprint(list)
}

func TestWindowIsBoundedByBytes(t *testing.T) {
	const limit = 100_000
	w := New(time.Hour, limit)
	now := time.Now()
	for revision := int64(1); revision <= 1000; revision++ {
		w.Append(now, []services.Change{change(revision, "pods", 1000)})
		if _, bytes := w.Held(); bytes > limit {
			t.Fatalf("%d bytes after revision %d", bytes, revision)
		}
	}
	n, bytes := w.Held()
	if want := limit / int(Size(change(1, "pods", 1000))); n != want {
		t.Errorf("%d changes of %d bytes are held, want %d", n, bytes, want)
	}
	if floor, _ := w.Span(); floor != int64(1000-n) {
		t.Errorf("floor %d with %d changes held", floor, n)
	}
	w.Append(now, []services.Change{change(1001, "pods", 2*limit)})
	if n, bytes := w.Held(); n != 0 || bytes != 0 {
		t.Errorf("%d changes, %d bytes after one that is too large for the window", n, bytes)
	}
	if w.Newest() != 1001 {
		t.Errorf("newest %d", w.Newest())
	}
}

func TestWindowGivesMemoryBack(t *testing.T) {
	const limit = 100_000
	w := New(time.Hour, limit)
	fill := func(from int64) {
		for revision := from; revision < from+200; revision++ {
			w.Append(time.Now(), []services.Change{change(revision, "pods", 1000)})
		}
	}
	fill(1)
	for _, c := range []struct{ bound, want int64 }{{limit / 10, limit / 10}, {0, 0}, {10 * limit, limit}} {
		w.Bound(c.bound)
		if got := w.Bytes(); got > c.want {
			t.Errorf("bounded by %d: %d bytes", c.bound, got)
		}
		fill(w.Newest() + 1)
		if got := w.Bytes(); got > c.want || got < c.want*8/10 {
			t.Errorf("bounded by %d and filled: %d bytes, want %d", c.bound, got, c.want)
		}
		floor, through := w.Span()
		if changes, _ := w.Held(); floor+int64(changes) != through {
			t.Errorf("holds %d changes of (%d, %d]", changes, floor, through)
		}
	}
}

func TestWindowIsBoundedByAge(t *testing.T) {
	w := New(time.Minute, 1<<20)
	start := time.Now()
	for revision := range int64(10) {
		w.Append(start.Add(time.Duration(revision)*10*time.Second), []services.Change{change(revision+1, "pods", 10)})
	}
	w.Expire(start.Add(100 * time.Second))
	if floor, through := w.Span(); floor != 4 || through != 10 {
		t.Errorf("holds (%d, %d], want (4, 10]", floor, through)
	}
}

func TestWindowChainsEachType(t *testing.T) {
	w := New(time.Hour, 1<<20)
	w.Reset(5, epoch.Epoch{})
	list := []services.Change{change(6, "pods", 1), change(7, "nodes", 1), change(8, "pods", 1), change(9, "nodes", 1)}
	w.Append(time.Now(), list)
	for i, want := range []int64{5, 5, 6, 7} {
		if list[i].Previous != want {
			t.Errorf("previous of %d is %d, want %d", list[i].Object.Revision, list[i].Previous, want)
		}
	}
	w.Advance(20)
	w.Advance(15)
	p := w.Progress()
	if p.Through != 20 || p.Floor != 5 || len(p.Heads) != 2 || p.Heads[resource.GroupResource{Resource: "pods"}] != 8 {
		t.Errorf("progress %+v", p)
	}
}

func TestReplayBoundsItsAnswers(t *testing.T) {
	w := New(time.Hour, 1<<30)
	now := time.Now()
	for revision := int64(1); revision <= 3; revision++ {
		w.Append(now, []services.Change{change(revision, "pods", PageBytes)})
	}
	for after := int64(0); after < 3; after++ {
		r, ok := w.Replay(services.ReplayRequest{GroupResource: resource.GroupResource{Resource: "pods"}, After: after})
		if !ok || len(r.Changes) != 1 || r.Through != after+1 || r.More != (after < 2) {
			t.Errorf("after %d: %d changes through %d, more %v", after, len(r.Changes), r.Through, r.More)
		}
	}
}

// TestWindowAgreesWithAList compares the window with a plain list of all changes.
func TestWindowAgreesWithAList(t *testing.T) {
	random := testbed.Random(t)
	w := New(time.Hour, 50_000)
	var all []services.Change
	revision := int64(0)
	for range 2000 {
		revision += 1 + random.Int64N(3)
		c := change(revision, fmt.Sprint("type", random.IntN(4)), random.IntN(500))
		all = append(all, c)
		w.Append(time.Now(), []services.Change{c})
		r := services.ReplayRequest{
			GroupResource: resource.GroupResource{Resource: fmt.Sprint("type", random.IntN(4))},
			After:         max(0, revision-random.Int64N(150)), Limit: random.IntN(30),
		}
		got, ok := w.Replay(r)
		if floor := w.Floor(r.GroupResource); ok != (r.After >= floor) {
			t.Fatalf("answered %v after %d with floor %d", ok, r.After, floor)
		}
		if floor, _ := w.Span(); !ok && r.After >= floor {
			t.Fatalf("did not answer after %d with floor %d of all types", r.After, floor)
		}
		if !ok {
			continue
		}
		var want []services.Change
		for _, c := range all {
			if c.Object.Key.GroupResource == r.GroupResource && c.Object.Revision > r.After && c.Object.Revision <= got.Through {
				want = append(want, c)
			}
		}
		if revisions(got.Changes) != revisions(want) {
			t.Fatalf("after %d: %v through %d, want %v", r.After, revisions(got.Changes), got.Through, revisions(want))
		}
		if !got.More && got.Through != revision {
			t.Fatalf("after %d: no more, but only through %d of %d", r.After, got.Through, revision)
		}
	}
}

// TestQuietTypesStayComplete: many changes of one type drop the changes of others from the
// window, but followers of the others need no history from etcd.
func TestQuietTypesStayComplete(t *testing.T) {
	w := New(time.Hour, 100_000)
	w.Reset(5, epoch.Epoch{})
	quiet, still := resource.GroupResource{Resource: "roles"}, resource.GroupResource{Resource: "nodes"}
	w.Append(time.Now(), []services.Change{change(6, "roles", 10)})
	for revision := int64(7); revision <= 500; revision++ {
		w.Append(time.Now(), []services.Change{change(revision, "pods", 1000)})
	}
	for _, c := range []struct {
		gr    resource.GroupResource
		after int64
		ok    bool
	}{{quiet, 6, true}, {quiet, 300, true}, {quiet, 5, false}, {still, 5, true}, {still, 4, false}, {resource.GroupResource{Resource: "pods"}, 300, false}} {
		r, ok := w.Replay(services.ReplayRequest{GroupResource: c.gr, After: c.after})
		if ok != c.ok || ok && (len(r.Changes) != 0 || r.Through != 500 || r.More) {
			t.Errorf("%v after %d: %v %+v", c.gr, c.after, ok, r)
		}
	}
	next := []services.Change{change(501, "roles", 10), change(502, "nodes", 10)}
	w.Append(time.Now(), next)
	if next[0].Previous != 6 || next[1].Previous != 5 {
		t.Errorf("previous %d and %d, want 6 and 5", next[0].Previous, next[1].Previous)
	}
}

// TestProgressLeavesOutQuietTypes: Progress has every type that changed in the last half
// minute, and no other.
func TestProgressLeavesOutQuietTypes(t *testing.T) {
	w := New(time.Hour, 1000)
	w.Reset(5, epoch.Epoch{})
	now := time.Now()
	w.Append(now, []services.Change{change(6, "roles", 10)})
	for i := range int64(5) {
		w.Append(now, []services.Change{change(7+i, "pods", 900)})
		w.Expire(now)
		p := w.Progress()
		head, named := p.Heads[resource.GroupResource{Resource: "roles"}]
		if named && head != 6 || !named && p.Floor < 6 {
			t.Errorf("after %d s: roles %d (%v) with floor %d", i*20, head, named, p.Floor)
		}
		if recent := i < 2; recent && !named || i == 4 && named {
			t.Errorf("after %d s: roles are named: %v", i*20, named)
		}
		if p.Heads[resource.GroupResource{Resource: "pods"}] != 7+i {
			t.Errorf("after %d s: %+v", i*20, p)
		}
		now = now.Add(20 * time.Second)
	}
}

// TestManyTypesAreBounded: the memory for dropped types is bounded; their floor rises
// instead.
func TestManyTypesAreBounded(t *testing.T) {
	w := New(time.Hour, 500)
	for revision := int64(1); revision <= 3*maxDropped; revision++ {
		w.Append(time.Now(), []services.Change{change(revision, fmt.Sprint("type", revision), 400)})
	}
	if len(w.dropped) > maxDropped {
		t.Errorf("%d types are remembered", len(w.dropped))
	}
	if floor := w.Floor(resource.GroupResource{Resource: "type1"}); floor < maxDropped {
		t.Errorf("floor %d of a forgotten type", floor)
	}
}
