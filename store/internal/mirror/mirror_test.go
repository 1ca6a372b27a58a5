package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
)

const deadline = 10 * time.Second

// loaded is a mirror without etcd, at revision 10.
func loaded(c Config, paths ...string) *Mirror {
	c.Client, c.Log = clientv3.NewCtxClient(context.Background()), slog.New(slog.DiscardHandler)
	m := New(c)
	tree := new(objects)
	for _, path := range paths {
		tree.Set(path, &services.Object{JSON: make([]byte, 100)})
	}
	m.reset(tree, 10, epoch.Epoch{})
	return m
}

func set(path string) []change {
	return []change{{path, 1, &services.Object{JSON: make([]byte, 100)}}}
}

func TestASnapshotNeverChanges(t *testing.T) {
	m := loaded(Config{}, "/a/1", "/a/2", "/b/1")
	before := m.Snapshot()
	m.apply([]change{{path: "/a/1"}}, 11)
	m.apply(set("/a/3"), 12)
	if _, ok := before.Get("/a/1"); !ok || before.CountAfter("/a/", "/a/1") != 1 || before.Revision != 10 {
		t.Error("the snapshot before has changed")
	}
	after := m.Snapshot()
	if _, ok := after.Get("/a/1"); ok || after.CountAfter("/a/", "/a/1") != 2 || after.Revision != 12 {
		t.Error("the snapshot after is not the newest state")
	}
}

// TestBytes: the size is that of the objects in memory, whatever happens to them.
func TestBytes(t *testing.T) {
	m := loaded(Config{}, "/a/1", "/a/2")
	for n, step := range []struct {
		do   func()
		want int64
	}{
		{func() {}, 200},
		{func() { m.apply(set("/a/3"), 11) }, 300},
		{func() { m.apply([]change{{"/a/1", 12, &services.Object{JSON: make([]byte, 7)}}}, 12) }, 207},
		{func() { m.apply([]change{{path: "/a/2"}, {path: "/a/9"}}, 13) }, 107},
		{func() { m.reset(m.Snapshot().tree, 14, epoch.Epoch{}) }, 107},
		{m.forget, 0},
	} {
		step.do()
		if got := m.Status().Bytes; got != step.want {
			t.Errorf("step %d: %d bytes, want %d", n, got, step.want)
		}
		if held, _ := sumOf(m.tree); held != step.want {
			t.Errorf("step %d: the objects have %d bytes, want %d", n, held, step.want)
		}
	}
}

func TestCountAfterCountsInsideThePrefix(t *testing.T) {
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf("/a/%03d", i), fmt.Sprintf("/ab/%03d", i))
	}
	s := loaded(Config{}, paths...).Snapshot()
	for last, want := range map[string]int64{"/a/": 1000, "/a/000": 999, "/a/500": 499, "/a/999": 0} {
		if got := s.CountAfter("/a/", last); got != want {
			t.Errorf("after %s: %d, want %d", last, got, want)
		}
	}
}

func TestAtFindsQuietRevisions(t *testing.T) {
	m := loaded(Config{}, "/a")
	m.advance(13)
	pinned := m.Snapshot()
	m.Pin(pinned)
	m.apply(set("/a"), 14)
	m.advance(16)
	for revision, want := range map[int64]bool{9: false, 10: true, 12: true, 13: true, 14: true, 16: true, 17: false} {
		s, ok := m.At(revision)
		if ok != want || ok && (s == pinned) != (revision < 14) {
			t.Errorf("revision %d: %v", revision, ok)
		}
	}
}

func TestPinsAreBounded(t *testing.T) {
	t.Run("in bytes", func(t *testing.T) {
		m := loaded(Config{PinBytes: 250}, "/a")
		m.Pin(m.Snapshot())
		for revision := int64(11); revision <= 13; revision++ {
			m.apply(set("/a"), revision)
			if _, ok := m.At(10); ok != (revision <= 12) {
				t.Errorf("at %d the pin is held: %v", revision, ok)
			}
		}
	})
	t.Run("in number", func(t *testing.T) {
		m := loaded(Config{}, "/a")
		for revision := int64(11); revision < 11+2*maxPins; revision++ {
			m.Pin(m.Snapshot())
			m.apply(set("/a"), revision)
		}
		if n := m.Status().Pins; n != maxPins {
			t.Errorf("%d pins are held", n)
		}
	})
	t.Run("in time", func(t *testing.T) {
		p, start := newPins(time.Minute, 0), time.Now()
		p.add(&Snapshot{changed: 1, Revision: 1}, start, 0)
		p.add(&Snapshot{changed: 2, Revision: 2}, start.Add(30*time.Second), 0)
		now := start.Add(70 * time.Second)
		if _, ok := p.find(1, now); ok {
			t.Error("a pin is found after its time")
		}
		if p.trim(now, 0); len(p.held) != 1 {
			t.Errorf("%d pins are held", len(p.held))
		}
	})
}

func TestWaitersWakeAtTheirRevision(t *testing.T) {
	m := loaded(Config{})
	const last = 40
	var mu sync.Mutex
	var wrong []int64
	var all sync.WaitGroup
	for revision := int64(5); revision <= last; revision++ {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			if err := m.Wait(ctx, revision); err != nil || m.Snapshot().Revision < revision {
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, revision)
			}
		})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Wait(cancelled, last+1); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	for revision := int64(11); revision <= last; revision += 2 {
		m.apply(set("/a"), revision)
		m.advance(revision + 1)
	}
	all.Wait()
	if len(wrong) > 0 || m.awaited() {
		t.Errorf("woken too early or never: %v; still awaited: %v", wrong, m.awaited())
	}
}

// TestPagesOfALoadFollowTheSizeOfObjects: the pages of a load are few, and hold neither many
// bytes nor very many objects.
func TestPagesOfALoadFollowTheSizeOfObjects(t *testing.T) {
	for _, c := range []struct {
		what           string
		objects, bytes int
		want           int64
	}{
		{"pods of 6 KiB", 500, 500 * 6 << 10, 2730},
		{"small objects", 500, 500 * 200, mostPage},
		{"objects of 1 MiB", 2730, 2730 << 20, leastPage},
		{"no bytes", 1, 0, mostPage},
	} {
		if got := nextPage(c.objects, c.bytes); got != c.want {
			t.Errorf("%s: a page of %d, want %d", c.what, got, c.want)
		}
	}
}
