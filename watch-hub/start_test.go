package watchhub

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// slowPast delays the responses of watches that start at a past revision.
type slowPast struct {
	clientv3.Watcher
	present int64
	release chan struct{}
}

func (s *slowPast) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	answers := s.Watcher.Watch(ctx, key, opts...)
	if clientv3.OpGet(key, opts...).Rev() >= s.present {
		return answers
	}
	held := make(chan clientv3.WatchResponse)
	go func() {
		defer close(held)
		select {
		case <-s.release:
		case <-ctx.Done():
			return
		}
		for answer := range answers {
			select {
			case held <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	return held
}

// withSlowPast returns a client of the same etcd that does not return past changes until
// release is called.
func withSlowPast(etcd *testbed.Etcd, present int64) (client *clientv3.Client, release func()) {
	slow := &slowPast{Watcher: etcd.Watcher, present: present, release: make(chan struct{})}
	client = clientv3.NewCtxClient(context.Background())
	client.KV, client.Lease, client.Watcher, client.Maintenance = etcd.KV, etcd.Lease, slow, etcd.Maintenance
	return client, sync.OnceFunc(func() { close(slow.release) })
}

// TestReadyFromThePresent: a hub is ready before it has read past changes into its window.
func TestReadyFromThePresent(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	last := int64(0)
	for i := range 5_000 {
		last = etcd.Write(pod(fmt.Sprint("p", i%50)), fmt.Sprint("value", i))
	}
	client, release := withSlowPast(etcd, last)
	defer release()
	hub := startHub(t, etcd, testbed.StartNATS(t).Connect(), func(c *Config) { c.Etcd = client })
	// New changes are published and can be replayed.
	now := etcd.Write(pod("now"), "now")
	heard := replayed(t, hub, last, now)
	if len(heard) != 1 || heard[0] != now {
		t.Errorf("after the present: %v, want %d", heard, now)
	}
	if floor, _ := hub.main.window.Span(); floor < last {
		t.Errorf("the window begins at %d, but the past was held back", floor)
	}
	release()
	// While the window is filled and objects are written, every reader gets each change
	// once.
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 500 {
			etcd.Write(pod(fmt.Sprint("later", i)), "value")
		}
	})
	for _, after := range []int64{0, last / 3, last - 1} {
		all.Go(func() {
			want := int(last-after) + 1
			if after == 0 {
				want = 5_001
			}
			for range 5 {
				if heard := replayed(t, hub, after, now); len(heard) != want {
					t.Errorf("after %d: %d changes, want %d", after, len(heard), want)
				}
			}
		})
	}
	all.Wait()
	deadline := time.Now().Add(time.Minute)
	for floor, _ := hub.main.window.Span(); floor > 0; floor, _ = hub.main.window.Span() {
		if time.Now().After(deadline) {
			t.Fatalf("the window begins at %d: the past is not read", floor)
		}
		replayed(t, hub, floor-1, now)
	}
	if heard := replayed(t, hub, 0, now); len(heard) != 5_001 {
		t.Errorf("from the filled window: %d changes", len(heard))
	}
}

// replayed returns the revisions of the changes in (after, through] and checks that
// each occurs once and in order.
func replayed(t *testing.T, hub services.WatchHub, after, through int64) (revisions []int64) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for position := after; position < through; {
		answer, err := hub.Replay(ctx, services.ReplayRequest{GroupResource: pods, After: position})
		if err != nil {
			t.Errorf("replaying after %d: %v", position, err)
			return revisions
		}
		for _, c := range answer.Changes {
			if c.Object.Revision <= position {
				t.Errorf("%d is told after %d", c.Object.Revision, position)
			}
			if position = c.Object.Revision; position <= through {
				revisions = append(revisions, position)
			}
		}
		position = max(position, answer.Through)
	}
	return revisions
}

// TestAFullWindowIsNotFilled: past changes are read only until the window is full.
func TestAFullWindowIsNotFilled(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	last := int64(0)
	for i := range 3_000 {
		last = etcd.Write(pod(fmt.Sprint("p", i)), "value")
	}
	const room = 100_000
	hub := startHub(t, etcd, testbed.StartNATS(t).Connect(), func(c *Config) { c.WindowBytes = room })
	deadline := time.Now().Add(time.Minute)
	for held := 0; held == 0; held, _ = hub.main.window.Held() {
		if time.Now().After(deadline) {
			t.Fatal("nothing of the past is in the window")
		}
		replayed(t, hub, 0, 10)
	}
	floor, _ := hub.main.window.Span()
	if held, bytes := hub.main.window.Held(); bytes > room || held < 20 || floor+int64(held) != last {
		t.Errorf("%d changes of %d bytes after %d of %d", held, bytes, floor, last)
	}
	if heard := replayed(t, hub, 0, last); len(heard) != 3_000 {
		t.Errorf("replayed %d changes", len(heard))
	}
}

// TestLargeObjectsFillTheWindow: a read of past changes that would take too much memory is
// repeated for fewer revisions.
func TestLargeObjectsFillTheWindow(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	last := int64(0)
	for i := range 40 {
		last = etcd.Write(pod(fmt.Sprint("p", i)), strings.Repeat("x", 500_000))
	}
	hub := startHub(t, etcd, testbed.StartNATS(t).Connect(), nil)
	deadline := time.Now().Add(time.Minute)
	for floor := last; floor > 0; floor, _ = hub.main.window.Span() {
		if time.Now().After(deadline) {
			t.Fatalf("the window begins at %d", floor)
		}
		replayed(t, hub, last-1, last)
	}
	if heard := replayed(t, hub, 0, last); len(heard) != 40 {
		t.Errorf("replayed %d changes", len(heard))
	}
}
