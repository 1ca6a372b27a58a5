package feed

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
)

var pods = resource.GroupResource{Resource: "pods"}

// history is a hub with every change since a revision.
type history struct {
	services.WatchHub
	mu      sync.Mutex
	changes []services.Change
	from    int64 // older changes have expired
	away    int   // the number of calls that fail as unavailable
	calls   int
}

func (h *history) Replay(_ context.Context, r services.ReplayRequest) (services.Replay, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.calls <= h.away {
		return services.Replay{}, services.Unavailable("away")
	}
	if r.After < h.from {
		return services.Replay{}, services.Expired("too old")
	}
	replay := services.Replay{Through: r.After}
	for _, c := range h.changes {
		if c.Object.Revision > r.After {
			if len(replay.Changes) == r.Limit {
				replay.More = true
				break
			}
			replay.Changes = append(replay.Changes, c)
			replay.Through = c.Object.Revision
		}
	}
	return replay, nil
}

// started returns a feed that began at a revision, without a bus.
func started(hub services.WatchHub, head int64, bytes int) *feed {
	f := newFeed(Config{Source: changes.Source{Hub: hub}, Bytes: bytes, Age: time.Hour}, pods)
	f.reset(head)
	return f
}

func (f *feed) watcher(s Selection) *Watcher {
	w := &Watcher{feed: f, selection: s, position: s.After, wake: make(chan struct{}, 1)}
	f.index.add(w)
	return w
}

func change(revision int64, namespace, name string) services.Change {
	return services.Change{Type: services.Modified, Object: services.Object{Revision: revision,
		Key: resource.Key{GroupResource: pods, Namespace: namespace, Name: name}, JSON: make([]byte, 100)}}
}

func (f *feed) add(list ...services.Change) {
	f.append(changes.Batch{Changes: list, Through: list[len(list)-1].Object.Revision})
}

func selector(t testing.TB, labels, fields string) resource.Selector {
	t.Helper()
	s, err := resource.ParseSelector(labels, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// next returns the revisions of the next batch.
func next(t *testing.T, w *Watcher) []int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	events, err := w.Next(ctx)
	if err != nil {
		t.Fatalf("no events: %v", err)
	}
	var revisions []int64
	for _, e := range events {
		revisions = append(revisions, e.Entry.Object.Revision)
	}
	return revisions
}

// silent fails if the watcher has something to deliver now.
func silent(t *testing.T, w *Watcher) {
	t.Helper()
	for {
		select {
		case <-w.wake:
			events, err := w.advance(t.Context())
			if err != nil || len(events) > 0 {
				t.Fatalf("expected nothing, got %v, %v", events, err)
			}
		default:
			return
		}
	}
}

func TestWatchersGetWhatTheySelect(t *testing.T) {
	f := started(&history{}, 10, 1<<20)
	all := f.watcher(Selection{After: 10})
	inA := f.watcher(Selection{After: 10, Namespace: "a"})
	named := f.watcher(Selection{After: 10, Selector: selector(t, "", "metadata.name=x")})
	later := f.watcher(Selection{After: 12})
	f.add(change(11, "a", "x"), change(12, "b", "x"), change(13, "a", "y"))
	for _, c := range []struct {
		what string
		w    *Watcher
		want []int64
	}{
		{"all", all, []int64{11, 12, 13}}, {"namespace a", inA, []int64{11, 13}},
		{"name x", named, []int64{11, 12}}, {"after 12", later, []int64{13}},
	} {
		if got := next(t, c.w); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
		silent(t, c.w)
	}
}

func TestEntersAndLeavesTheSelection(t *testing.T) {
	f := started(&history{}, 1, 1<<20)
	onNode := f.watcher(Selection{After: 1, Selector: selector(t, "", "spec.nodeName=n1")})
	labelled := f.watcher(Selection{After: 1, Selector: selector(t, "app=web", "")})
	step := func(revision int64, before, after string) services.Change {
		c := change(revision, "a", "x")
		c.OldFields, c.Object.Fields = map[string]string{"spec.nodeName": before}, map[string]string{"spec.nodeName": after}
		c.OldLabels, c.Object.Labels = map[string]string{"app": before}, map[string]string{"app": after}
		c.Object.JSON = []byte(after)
		if before != after {
			c.OldJSON = []byte(before)
		}
		return c
	}
	f.add(step(2, "", "n1"), step(3, "n1", "n1"), step(4, "n1", "web"), step(5, "web", ""))
	for _, c := range []struct {
		w    *Watcher
		want []string
	}{
		{onNode, []string{"ADDED n1 at 2", "MODIFIED n1 at 3", "DELETED n1 at 4"}},
		{labelled, []string{"ADDED web at 4", "DELETED web at 5"}},
	} {
		events, err := c.w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range events {
			got = append(got, fmt.Sprintf("%s %s at %d", e.Type, e.Object().JSON, e.Object().Revision))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
}

func TestOnlyWhoMayWantAChangeIsWoken(t *testing.T) {
	f := started(&history{}, 1, 1<<20)
	other := f.watcher(Selection{After: 1, Namespace: "b"})
	silent(t, other) // consumes the wake-up of its registration
	f.add(change(2, "a", "x"))
	select {
	case <-other.wake:
		t.Error("a watcher of namespace b was woken by a change in a")
	default:
	}
	if got := other.Position(); got != 2 {
		t.Errorf("position %d, want 2: nothing selected happened", got)
	}
}

// TestAQuietWatcherIsNotBehind lets the ring forget everything that a watcher did not
// select, and the history too.
func TestAQuietWatcherIsNotBehind(t *testing.T) {
	hub := &history{from: 1000}
	f := started(hub, 0, 10*(2*100+512))
	quiet := f.watcher(Selection{Namespace: "b"})
	silent(t, quiet)
	for i := int64(1); i <= 100; i++ {
		f.add(change(i, "a", "x"))
	}
	if got := quiet.Position(); got != 100 {
		t.Errorf("position %d, want 100", got)
	}
	for i := int64(101); i <= 200; i++ {
		f.add(change(i, "a", "x"))
	}
	f.add(change(201, "b", "x"))
	if got := next(t, quiet); !slices.Equal(got, []int64{201}) || hub.calls > 0 {
		t.Errorf("got %v with %d calls of the hub", got, hub.calls)
	}
}

func TestALaggardIsServedFromHistory(t *testing.T) {
	hub := &history{}
	f := started(hub, 0, 10*(2*100+512)) // room for about ten changes
	slow := f.watcher(Selection{})
	var want []int64
	for i := int64(1); i <= 100; i++ {
		c := change(i, "a", "x")
		hub.changes = append(hub.changes, c)
		f.add(c)
		want = append(want, i)
	}
	if f.state.Load().floor == 0 {
		t.Fatal("the ring forgot nothing: the test shows nothing")
	}
	var got []int64
	for len(got) < len(want) {
		got = append(got, next(t, slow)...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if hub.calls == 0 {
		t.Error("the hub was not called")
	}

	hub.from = 50
	gone := f.watcher(Selection{After: 5})
	if _, err := gone.Next(t.Context()); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("a watcher behind history got %v, want Expired", err)
	}
}

// TestNothingIsLostUnderLoad runs watchers with various selections while changes arrive
// and the ring is trimmed, and compares what each received.
func TestWatchersEndWithTheHistory(t *testing.T) {
	hub := &history{}
	f := started(hub, 10, 1<<20)
	step := func(epoch string, revision int64) {
		f.append(changes.Batch{Epoch: epoch, Through: revision, Changes: []services.Change{change(revision, "a", "x")}})
	}
	step("one", 11)
	quiet := f.watcher(Selection{After: 11, Namespace: "b"})
	busy := f.watcher(Selection{After: 10})
	if got := next(t, busy); !slices.Equal(got, []int64{11}) {
		t.Fatalf("got %v", got)
	}
	silent(t, quiet)
	f.reset(5) // the store was restored
	step("two", 12)
	for what, w := range map[string]*Watcher{"quiet": quiet, "busy": busy} {
		if events, err := w.Next(t.Context()); !services.IsReason(err, services.ReasonExpired) {
			t.Errorf("the %s watcher got %v, %v; want Expired", what, events, err)
		}
	}
	if p := quiet.Position(); p > 11 {
		t.Errorf("a watcher of the lost history is at %d", p)
	}
	if got := next(t, f.watcher(Selection{After: 5})); !slices.Equal(got, []int64{12}) {
		t.Errorf("a new watcher got %v", got)
	}
}

// TestFeedsGiveMemoryBack bounds two feeds: the smaller one keeps what it has, and the
// watcher of the larger one is served from history.
func TestFeedsGiveMemoryBack(t *testing.T) {
	const entry = 2*100 + 512
	hub := &history{}
	large, small := started(hub, 0, 1000*entry), started(hub, 0, 1000*entry)
	all := &Feeds{config: large.config, feeds: map[resource.GroupResource]*feed{pods: large, {Resource: "nodes"}: small}}
	w := large.watcher(Selection{})
	for i := int64(1); i <= 100; i++ {
		c := change(i, "a", "x")
		hub.changes = append(hub.changes, c)
		large.add(c)
	}
	small.add(change(1, "a", "x"))
	if got := all.Bytes(); got != 101*entry {
		t.Errorf("feeds hold %d bytes, want %d", got, 101*entry)
	}
	all.Bound(11 * entry)
	for _, f := range []*feed{large, small} {
		f.append(changes.Batch{Through: 100}) // progress
	}
	if large.bytes() != 10*entry || small.bytes() != entry {
		t.Errorf("the feeds hold %d and %d bytes", large.bytes(), small.bytes())
	}
	got := next(t, w)
	for len(got) < 100 {
		got = append(got, next(t, w)...)
	}
	if len(got) != 100 || hub.calls == 0 {
		t.Errorf("got %d changes after %d calls of the hub", len(got), hub.calls)
	}
	all.Bound(1 << 40)
	for i := int64(101); i <= 200; i++ {
		large.add(change(i, "a", "x"))
	}
	if large.bytes() != 110*entry {
		t.Errorf("the feed holds %d bytes when memory is free again", large.bytes())
	}
}

func TestALaggardWaitsForAHubThatIsAway(t *testing.T) {
	hub := &history{changes: []services.Change{change(5, "a", "x")}, away: 3}
	w := started(hub, 10, 1<<20).watcher(Selection{After: 1})
	if got := next(t, w); !slices.Equal(got, []int64{5}) || hub.calls != 4 {
		t.Errorf("got %v after %d calls", got, hub.calls)
	}
}

// TestALaggardThatEndsKeepsItsPosition: a watch that ends while the hub is away, and whose ring has
// forgotten what it did not see, is resumed from where it was.
func TestALaggardThatEndsKeepsItsPosition(t *testing.T) {
	hub := &history{away: math.MaxInt}
	f := started(hub, 0, 10*(2*100+512))
	w := f.watcher(Selection{Namespace: "a"})
	silent(t, w)
	for i := int64(1); i <= 100; i++ {
		c := change(i, "a", "x")
		hub.changes = append(hub.changes, c)
		f.add(c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if events, err := w.Next(ctx); err == nil {
		t.Fatalf("got %d events without the hub", len(events))
	}
	if got := w.Position(); got != 0 {
		t.Errorf("position %d, want 0", got)
	}
	f.add(change(101, "a", "x"))
	hub.away = 0
	if got := next(t, w); len(got) == 0 || got[0] != 1 {
		t.Errorf("got %v, want 1 first", got)
	}
}

func TestNothingIsLostUnderLoad(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var made []services.Change
	for revision := int64(1); revision <= 2000; revision++ {
		c := change(revision, fmt.Sprint("ns", random.IntN(4)), fmt.Sprint("n", random.IntN(5)))
		c.Object.Labels, c.OldLabels = map[string]string{"app": fmt.Sprint("a", random.IntN(5))}, map[string]string{"app": fmt.Sprint("a", random.IntN(5))}
		made = append(made, c)
	}
	hub := &history{}
	f := started(hub, 0, 40*(2*100+512))
	var all sync.WaitGroup
	for i := range 20 {
		s := Selection{After: int64(random.IntN(3))}
		switch i % 4 {
		case 1:
			s.Namespace = fmt.Sprint("ns", i%4)
		case 2:
			s.Selector = selector(t, "", fmt.Sprintf("metadata.name=n%d", i%5))
		case 3:
			s.Selector = selector(t, fmt.Sprintf("app in (a%d,a%d)", i%5, i%3), "")
		}
		var want, got []int64
		for k := range made {
			if made[k].Object.Revision > s.After && s.eventType(&made[k]) != 0 {
				want = append(want, made[k].Object.Revision)
			}
		}
		w := f.watcher(s)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			for len(got) < len(want) {
				events, err := w.Next(ctx)
				if err != nil {
					t.Errorf("watcher %d: %v after %d of %d changes", i, err, len(got), len(want))
					return
				}
				for _, e := range events {
					got = append(got, e.Entry.Object.Revision)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("watcher %d: got %d changes, want %d, in order and once", i, len(got), len(want))
			}
		})
	}
	for rest := made; len(rest) > 0; {
		n := min(1+random.IntN(5), len(rest))
		hub.mu.Lock()
		hub.changes = append(hub.changes, rest[:n]...)
		hub.mu.Unlock()
		f.add(rest[:n]...)
		rest = rest[n:]
	}
	all.Wait()
}
