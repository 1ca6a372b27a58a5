package watchhub

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/keys"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// TestKeysAreReplacedUnderLoad replaces the key repeatedly, in all ways, with 200 followers
// and two hubs.
func TestKeysAreReplacedUnderLoad(t *testing.T) {
	random := testbed.Random(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*followTimeout)
	defer cancel()
	b := newRig(t)
	b.use(b.hub)
	second := startHub(t, b.etcd, b.nats.Connect(), func(c *Config) { c.Name = "second" })
	writeRandomly(b.etcd, random, 20)

	const followers = 200
	// Ten processes, half of which use the hub that does not publish.
	sources := make([]changes.Source, 10)
	for i := range sources {
		var hub services.WatchHub = b
		if i%2 == 1 {
			hub = second
		}
		sources[i] = changes.Source{Bus: b.nats.Connect(), Hub: hub, Silence: time.Second,
			Opener: changes.NewOpener(hub, nil, slog.New(slog.DiscardHandler))}
	}
	progress, err := b.nats.Connect().SubscribeSync(changes.SubjectProgress)
	if err != nil {
		t.Fatal(err)
	}
	var observers []*observer
	var ends []chan int64
	var group sync.WaitGroup
	for i := range followers {
		o := &observer{gr: types[i%len(types)], after: 1 + random.Int64N(20)}
		end := make(chan int64, 1)
		observers, ends = append(observers, o), append(ends, end)
		group.Go(func() { o.follow(ctx, sources[i%len(sources)], end) })
	}
	for round := range 3 {
		var writer sync.WaitGroup
		writer.Go(func() { writeRandomly(b.etcd, random, 50) })
		before := b.hub.keys.Current().ID()
		switch round {
		case 0:
			err = b.hub.keys.Rotate(ctx)
		case 1:
			err = second.keys.Rotate(ctx)
		case 2:
			_, err = b.etcd.Delete(ctx, keys.Path)
		}
		if err != nil {
			t.Fatal(err)
		}
		writer.Wait()
		for sealedWith(t, progress) == before {
			t.Log("still sealed with the key before")
		}
	}
	through := b.etcd.Write(resource.Key{GroupResource: types[0], Name: "last"}, "last")
	for _, end := range ends {
		end <- through
	}
	for _, gr := range types {
		b.etcd.Write(resource.Key{GroupResource: gr, Name: "after"}, "after")
	}
	group.Wait()
	histories := map[resource.GroupResource][]entry{}
	for _, gr := range types {
		histories[gr] = truth(t, b.etcd, gr, through)
	}
	for _, o := range observers {
		o.check(t, histories[o.gr], through)
	}
	if t.Failed() {
		return
	}
	if one, two := b.hub.keys.Current(), second.keys.Current(); one.ID() != two.ID() {
		t.Error("the hubs do not share a key")
	}
	t.Logf("%d replays by %d followers", b.replays.Load(), followers/2)
}

// sealedWith returns the ID of the key of the next message.
func sealedWith(t *testing.T, sub *nats.Subscription) seal.ID {
	t.Helper()
	m, err := sub.NextMsg(followTimeout)
	if err != nil {
		t.Fatal(err)
	}
	id, err := seal.KeyID(m.Data)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestKeysAreReplacedOnSchedule(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	k := keys.New(etcd.Client, 50*time.Millisecond, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), followTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	<-k.Ready()
	seen := map[string]bool{}
	for changed := etcd.Watch(ctx, keys.Path); len(seen) < 4; <-changed {
		seen[fmt.Sprint(k.Current().ID())] = true
	}
	accepted, err := k.Accepted(ctx, nil)
	if err != nil || len(accepted) < 4 {
		t.Fatalf("%d keys, %v", len(accepted), err)
	}
	for i, a := range accepted {
		if last := i == len(accepted)-1; last != (a.Lifetime == 0) || a.Lifetime > keys.Overlap {
			t.Errorf("key %d of %d is accepted for %v", i, len(accepted), a.Lifetime)
		}
	}
	cancel()
	<-done
}

// clockKey is a key in etcd, as a hub with any clock writes it.
type clockKey struct {
	Secret   []byte    `json:"secret"`
	Made     time.Time `json:"made"`
	Replaced time.Time `json:"replaced,omitzero"`
}

// writeKeys replaces the keys in etcd and returns their IDs.
func writeKeys(t *testing.T, etcd *testbed.Etcd, list ...clockKey) (ids []seal.ID) {
	t.Helper()
	for i := range list {
		if list[i].Secret == nil {
			list[i].Secret = seal.NewSecret()
		}
		m, err := seal.NewMaster(list[i].Secret)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID())
	}
	value, err := json.Marshal(list)
	if err == nil {
		_, err = etcd.Put(t.Context(), keys.Path, string(value))
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// lifetimes returns how long each key is accepted, by their IDs.
func lifetimes(t *testing.T, k *keys.Keys, read seal.ID) map[seal.ID]time.Duration {
	t.Helper()
	found := map[seal.ID]time.Duration{}
	for end := time.Now().Add(followTimeout); ; {
		accepted, err := k.Accepted(t.Context(), read[:])
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range accepted {
			found[a.ID()] = a.Lifetime
		}
		if _, ok := found[read]; ok {
			return found
		}
		if time.Now().After(end) {
			t.Fatal("the keys are not read")
		}
		clear(found)
	}
}

// TestClocksOfHubsDiffer: the clock of the hub that replaces a key decides neither how long another
// hub accepts it, nor when that one replaces the next.
func TestClocksOfHubsDiffer(t *testing.T) {
	const day = 24 * time.Hour
	for name, skew := range map[string]time.Duration{"ahead": day, "behind": -day} {
		t.Run(name, func(t *testing.T) {
			etcd := testbed.StartEtcd(t)
			start := func(every time.Duration) *keys.Keys {
				ctx, cancel := context.WithCancel(t.Context())
				k, done := keys.New(etcd.Client, every, slog.New(slog.DiscardHandler)), make(chan struct{})
				go func() { defer close(done); k.Run(ctx) }()
				t.Cleanup(func() { cancel(); <-done })
				<-k.Ready()
				return k
			}
			other := time.Now().Add(skew)
			first := clockKey{Secret: seal.NewSecret(), Made: other.Add(-time.Hour)}
			old := writeKeys(t, etcd, first)[0]
			k := start(10 * day)
			first.Replaced = other
			current := writeKeys(t, etcd, first, clockKey{Made: other})[1]
			if got, ok := lifetimes(t, k, current)[old]; !ok || got <= keys.Overlap/2 || got > keys.Overlap {
				t.Errorf("the hub that knew the key accepts it for %v (%v), want about %v", got, ok, keys.Overlap)
			}
			if got, ok := lifetimes(t, start(10*day), current)[old]; ok != (skew > 0) || got > keys.Overlap {
				t.Errorf("a hub that starts now accepts it for %v (%v), want at most %v", got, ok, keys.Overlap)
			}
			if err := k.Rotate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, ok := lifetimes(t, k, k.Current().ID())[old]; !ok {
				t.Error("another replacement ends the overlap")
			}
		})
	}
	t.Run("far ahead", func(t *testing.T) {
		etcd := testbed.StartEtcd(t)
		made := writeKeys(t, etcd, clockKey{Made: time.Now().Add(3650 * day)})[0]
		k := keys.New(etcd.Client, 50*time.Millisecond, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithTimeout(t.Context(), followTimeout)
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); k.Run(ctx) }()
		<-k.Ready()
		for changed := etcd.Watch(ctx, keys.Path); k.Current().ID() == made; {
			if _, ok := <-changed; !ok {
				t.Fatal("the key is not replaced")
			}
		}
		cancel()
		<-done
	})
}

// TestKeysOutliveHubs: a restarted hub uses the existing keys.
func TestKeysOutliveHubs(t *testing.T) {
	b := newRig(t)
	before := b.hub.keys.Current().ID()
	b.hub.stop()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.untilPublishing(t, b.hub)
	if after := b.hub.keys.Current().ID(); after != before {
		t.Errorf("key %x after %x", after, before)
	}
}
