package watchhub

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// types are the types of the objects that the tests write.
var types = []resource.GroupResource{
	{Resource: "pods"}, {Group: "apps", Resource: "deployments"}, {Group: "rbac.test.example", Resource: "roles"},
}

// entry is a change as etcd reports it.
type entry struct {
	kind     services.ChangeType
	key      string
	revision int64
	json     string
}

func (e entry) String() string { return fmt.Sprintf("%s %s at %d", e.kind, e.key, e.revision) }

// truth reads the history of a type from etcd itself.
func truth(t *testing.T, etcd *testbed.Etcd, gr resource.GroupResource, through int64) []entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), followTimeout)
	defer cancel()
	var entries []entry
	for response := range etcd.Watch(ctx, gr.Path(), clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV(), clientv3.WithProgressNotify()) {
		for _, event := range response.Events {
			if event.Kv.ModRevision > through {
				return entries
			}
			e := entry{kind: services.Added, key: string(event.Kv.Key), revision: event.Kv.ModRevision}
			kv := event.Kv
			switch {
			case event.Type == clientv3.EventTypeDelete:
				e.kind, kv = services.Deleted, event.PrevKv
			case event.IsModify():
				e.kind = services.Modified
			}
			_, object, _ := bytes.Cut(kv.Value, []byte("\n"))
			e.json = string(object)
			entries = append(entries, e)
		}
	}
	t.Fatalf("etcd's history of %s ends early", gr)
	return nil
}

const followTimeout = 3 * time.Minute

// observer follows a type and records what it receives.
type observer struct {
	gr      resource.GroupResource
	after   int64
	entries []entry
	through int64
	err     error
}

// follow follows until it has received everything through the target revision, which it
// receives from until.
func (o *observer) follow(ctx context.Context, source changes.Source, until <-chan int64) {
	stream, err := source.Follow(ctx, o.gr, o.after)
	if err != nil {
		o.err = err
		return
	}
	defer stream.Close()
	var target int64
	for o.through = o.after; target == 0 || o.through < target; {
		batch, err := stream.Next(ctx)
		if err != nil {
			o.err = err
			return
		}
		for _, c := range batch.Changes {
			o.entries = append(o.entries, entry{
				kind: c.Type, key: c.Object.Key.Path(), revision: c.Object.Revision, json: unversioned(c.Object),
			})
		}
		o.through = batch.Through
		select {
		case target = <-until:
		default:
		}
	}
}

// unversioned returns the object without its resourceVersion, unless that differs from its
// revision.
func unversioned(o services.Object) string {
	return string(bytes.Replace(o.JSON, fmt.Appendf(nil, `"resourceVersion":"%d",`, o.Revision), nil, 1))
}

// check compares what an observer received with etcd's history of its type.
func (o *observer) check(t *testing.T, history []entry, through int64) {
	t.Helper()
	if o.err != nil {
		t.Errorf("%s after %d: at %d: %v", o.gr, o.after, o.through, o.err)
		return
	}
	var want []entry
	for _, e := range history {
		if e.revision > o.after {
			want = append(want, e)
		}
	}
	got := o.entries
	for len(got) > 0 && got[len(got)-1].revision > through {
		got = got[:len(got)-1]
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s after %d: change %d is %v, want %v", o.gr, o.after, i, got[i], want[i])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s after %d: %d changes, want %d", o.gr, o.after, len(got), len(want))
	}
}

// writeRandomly changes objects of all types, n times.
func writeRandomly(etcd *testbed.Etcd, random *rand.Rand, n int) {
	held := map[resource.Key]bool{}
	for i := range n {
		key := resource.Key{GroupResource: types[random.IntN(len(types))], Name: fmt.Sprint("o", random.IntN(20))}
		if random.IntN(3) > 0 {
			key.Namespace = fmt.Sprint("ns", random.IntN(3))
		}
		if held[key] && random.IntN(3) == 0 {
			etcd.Remove(key)
			delete(held, key)
			continue
		}
		etcd.Write(key, fmt.Sprint("value", i))
		held[key] = true
	}
}

// disturbance injects faults while followers follow.
type disturbance func(t *testing.T, b *rig)

// rig is an etcd, a NATS and one or two hubs that are restarted.
type rig struct {
	etcd *testbed.Etcd
	nats *testbed.NATS
	bus  *nats.Conn
	hub  runningHub

	replays atomic.Int64
	mu      sync.Mutex
	current services.WatchHub
}

// Replay implements services.WatchHub with the current hub, as the transport does.
func (b *rig) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	b.replays.Add(1)
	b.mu.Lock()
	hub := b.current
	b.mu.Unlock()
	if hub == nil {
		return services.Replay{}, services.Unavailable("no hub")
	}
	return hub.Replay(ctx, r)
}

// Keys implements services.WatchHub with the current hub.
func (b *rig) Keys(ctx context.Context, r services.KeysRequest) (services.Keys, error) {
	b.mu.Lock()
	hub := b.current
	b.mu.Unlock()
	if hub == nil {
		return services.Keys{}, services.Unavailable("no hub")
	}
	return hub.Keys(ctx, r)
}

func (b *rig) use(hub services.WatchHub) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = hub
}

func restartHub(t *testing.T, b *rig) {
	b.use(nil)
	b.hub.stop()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.use(b.hub)
}

// killHub simulates a crash: the hub's lease is not released and must expire.
func killHub(t *testing.T, b *rig) {
	b.use(nil)
	b.hub.stop()
	seat(t, b.etcd, b.hub.config.Name)
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.use(b.hub)
}

// seat makes a hub the publisher for the next minute, and returns the revision at which
// it became that.
func seat(t *testing.T, etcd *testbed.Etcd, name string) int64 {
	t.Helper()
	lease, err := etcd.Grant(context.Background(), 60)
	if err != nil {
		t.Fatal(err)
	}
	put, err := etcd.Put(context.Background(), publisherKey, name, clientv3.WithLease(lease.ID))
	if err != nil {
		t.Fatal(err)
	}
	return put.Header.Revision
}

func restartNATS(_ *testing.T, b *rig) {
	b.nats.Stop()
	b.nats.Start()
}

func replaceHub(t *testing.T, b *rig) {
	old := b.hub
	b.hub = startHub(t, b.etcd, b.nats.Connect(), func(c *Config) { c.Name = fmt.Sprint("hub-", rand.Int()) })
	if rand.IntN(2) == 0 {
		b.use(b.hub)
	}
	old.stop()
	b.use(b.hub)
}

func loseMessages(t *testing.T, b *rig) { b.nats.Lose(30) }

func smallWindow(t *testing.T, b *rig) { b.hub.main.window.Expire(time.Now().Add(2 * time.Hour)) }

// twoPublishers lets two hubs publish everything at the same time, as when a frozen one
// continues that others have replaced.
func twoPublishers(t *testing.T, b *rig) {
	other := startHub(t, b.etcd, b.nats.Connect(), func(c *Config) { c.Name = fmt.Sprint("hub-", rand.Int()) })
	other.election.leading.Store(true)
}

// TestFollowersHearEverything compares what followers receive, whatever fails on the
// way, with etcd's own history.
func TestFollowersHearEverything(t *testing.T) {
	for name, disturb := range map[string]disturbance{
		"undisturbed":       nil,
		"hub restarts":      restartHub,
		"hub dies":          killHub,
		"NATS restarts":     restartNATS,
		"another hub":       replaceHub,
		"several publish":   twoPublishers,
		"messages are lost": loseMessages,
		"window is short":   smallWindow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followEverything(t, testbed.StartEtcd(t), disturb)
		})
	}
}

func TestFollowersReceiveEverythingFromRemoteEtcd(t *testing.T) {
	t.Parallel()
	followEverything(t, testbed.StartRemoteEtcd(t), restartHub)
}

func followEverything(t *testing.T, etcd *testbed.Etcd, disturb disturbance) {
	random := testbed.Random(t)
	ctx, cancel := context.WithTimeout(t.Context(), followTimeout)
	defer cancel()
	b := &rig{etcd: etcd, nats: testbed.StartNATS(t)}
	b.bus = b.nats.Connect()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.use(b.hub)
	writeRandomly(b.etcd, random, 50)

	var observers []*observer
	var ends []chan int64
	var group sync.WaitGroup
	for i := range 2 * len(types) {
		o := &observer{gr: types[i%len(types)], after: 1 + random.Int64N(50)}
		source := changes.Source{Bus: b.nats.Connect(), Hub: b, Silence: 300 * time.Millisecond}
		if i >= len(types) {
			source.Buffer = 2000 // overflows often
		}
		end := make(chan int64, 1)
		observers, ends = append(observers, o), append(ends, end)
		group.Go(func() { o.follow(ctx, source, end) })
	}
	for range 4 {
		var writer sync.WaitGroup
		writer.Go(func() { writeRandomly(b.etcd, random, 150) })
		if disturb != nil {
			disturb(t, b)
		}
		writer.Wait()
	}
	through := b.etcd.Write(resource.Key{GroupResource: types[0], Name: "last"}, "last")
	for _, end := range ends {
		end <- through
	}
	for _, gr := range types {
		b.etcd.Write(resource.Key{GroupResource: gr, Name: "after"}, "after")
	}
	group.Wait()
	t.Logf("%d replays", b.replays.Load())
	for _, o := range observers {
		o.check(t, truth(t, b.etcd, o.gr, through), through)
	}
}
