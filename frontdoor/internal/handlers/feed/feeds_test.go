package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

func newFeeds(t *testing.T, cluster *fake.Cluster, idle time.Duration) *Feeds {
	return New(t.Context(), Config{Source: cluster.Source(), Bytes: 1 << 20, Age: time.Hour, Idle: idle,
		Head: func(ctx context.Context, of resource.GroupResource) (int64, error) { return cluster.Revision(ctx, of) }})
}

func (f *Feeds) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.feeds)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !met(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestFeedsOfManyEndedTypes: after 1,000 types were watched and deleted, or are only no longer watched,
// nothing of them is left.
func TestFeedsOfManyEndedTypes(t *testing.T) {
	for name, deleted := range map[string]bool{"deleted": true, "idle": false} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.New(t)
			idle := time.Hour
			if !deleted {
				idle = time.Millisecond
			}
			feeds := newFeeds(t, cluster, idle)
			before := runtime.NumGoroutine()
			peak := 0
			for i := range 1000 {
				gr := resource.GroupResource{Group: "example.com", Resource: fmt.Sprintf("t%d", i)}
				w, err := feeds.Watch(t.Context(), Selection{GroupResource: gr})
				if err != nil {
					t.Fatal(err)
				}
				cluster.Put(t, gr, `{metadata: {name: x}}`)
				if got := next(t, w); len(got) != 1 {
					t.Fatalf("%s: %v", gr, got)
				}
				peak = max(peak, runtime.NumGoroutine())
				if deleted && i%2 == 0 {
					feeds.End(gr, cluster.Put(t, gr, `{metadata: {name: y}}`))
					drained(t, w, 1)
				}
				w.Close()
				w.Close() // is allowed
				if deleted && i%2 == 1 {
					feeds.End(gr, 1)
				}
			}
			eventually(t, "no feed is left", func() bool { return feeds.count() == 0 })
			eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
			if peak <= before {
				t.Errorf("%d goroutines before, %d with feeds", before, peak)
			}
			if n := feeds.Bytes(); n != 0 {
				t.Errorf("%d bytes", n)
			}
		})
	}
}

// drained expects so many events and then ErrEnded.
func drained(t *testing.T, w *Watcher, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		events, err := w.Next(ctx)
		if errors.Is(err, ErrEnded) && want == 0 {
			return
		}
		if want -= len(events); err != nil || want < 0 {
			t.Fatalf("%d events are missing: %v", want, err)
		}
	}
}

// TestEndedTypes: the watchers of a type that ends get its last changes, even those that the feed has not
// received yet, and watchers of a new type with its name get none of them.
func TestEndedTypes(t *testing.T) {
	cluster := fake.New(t)
	feeds := newFeeds(t, cluster, time.Hour)
	cluster.Put(t, pods, `{metadata: {name: a}}`)
	open := func() *Watcher {
		now, err := cluster.Revision(t.Context(), pods)
		if err != nil {
			t.Fatal(err)
		}
		w, err := feeds.Watch(t.Context(), Selection{GroupResource: pods, After: now})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	one, other := open(), open()
	defer one.Close()
	last := cluster.Put(t, pods, `{metadata: {name: b}}`) + 1 // the next, for which the feed waits
	feeds.End(pods, last)
	later := open()
	defer later.Close()
	cluster.Delete(resource.Key{GroupResource: pods, Name: "b"})
	drained(t, one, 2)
	drained(t, other, 2)
	other.Close()
	if got := next(t, later); len(got) != 1 || got[0] != last {
		t.Errorf("the later type: %v, want %d", got, last)
	}
	if feeds.count() != 1 {
		t.Errorf("%d feeds", feeds.count())
	}
}

// TestFeedsAreUsedAgain: a feed that is watched again in time is the same, however watchers come and go.
func TestFeedsAreUsedAgain(t *testing.T) {
	cluster := fake.New(t)
	kept, short := newFeeds(t, cluster, time.Hour), newFeeds(t, cluster, 0)
	first := kept.open(pods)
	kept.release(first)
	if again := kept.open(pods); again != first || again.use.idle != nil {
		t.Error("another feed, or it is about to end")
	}
	kept.release(first)
	var watching sync.WaitGroup
	for range 8 {
		watching.Go(func() {
			for i := range 50 {
				now, _ := cluster.Revision(t.Context(), pods)
				w, err := short.Watch(t.Context(), Selection{GroupResource: pods, After: now})
				if err != nil {
					t.Error(err)
					return
				}
				if i%5 == 0 {
					cluster.Put(t, pods, `{metadata: {name: a}}`)
					if got := next(t, w); len(got) == 0 {
						t.Error("no event")
					}
				}
				w.Close()
			}
		})
	}
	watching.Wait()
	eventually(t, "no feed is left", func() bool { return short.count() == 0 })
}
