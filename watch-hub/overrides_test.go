package watchhub

import (
	"fmt"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// override returns a change of a hub's configuration: a second etcd stores some types.
func override(second *testbed.Etcd, types ...resource.GroupResource) func(*Config) {
	return func(c *Config) { c.Overrides = []etcd.Override{{Name: "second", Types: types, Client: second.Client}} }
}

// ofSecond waits until a hub follows its second etcd, and returns that follower.
func ofSecond(t *testing.T, hub runningHub) *follower {
	t.Helper()
	select {
	case <-hub.apart[0].ready:
	case <-time.After(followTimeout):
		t.Fatal("the hub does not follow the second etcd")
	}
	return hub.apart[0]
}

// TestContractOfOverrides runs the contract suite on types in an etcd of their own.
func TestContractOfOverrides(t *testing.T) {
	contracttest.WatchHub(t, func(t *testing.T) contracttest.HubSetup {
		main, second := testbed.StartEtcd(t), testbed.StartEtcd(t)
		types := []resource.GroupResource{{Resource: "others"}}
		for i := range 20 {
			things := resource.GroupResource{Group: "test.example", Resource: fmt.Sprint("things", i)}
			types = append(types, things, resource.GroupResource{Group: things.Group, Resource: things.Resource, Custom: true})
		}
		hub := startHub(t, main, testbed.StartNATS(t).Connect(), override(second, types...))
		apart := ofSecond(t, hub)
		of := func(key resource.Key) *testbed.Etcd {
			if hub.followerOf(key.GroupResource) == apart {
				return second
			}
			return main
		}
		return contracttest.HubSetup{
			Hub:    hub,
			Write:  func(key resource.Key, value string) int64 { return of(key).Write(key, value) },
			Delete: func(key resource.Key) int64 { return of(key).Remove(key) },
			Forget: func(through int64) { forget(t, second, apart, through) },
		}
	})
}

// TestOverridesAreFollowedApart: what happens in one etcd neither moves nor hides what is followed in another.
// Objects in the wrong etcd are not published.
func TestOverridesAreFollowedApart(t *testing.T) {
	b := &rig{etcd: testbed.StartEtcd(t), nats: testbed.StartNATS(t)}
	events := resource.GroupResource{Resource: "events"}
	event := func(name string) resource.Key {
		return resource.Key{GroupResource: events, Namespace: "ns", Name: name}
	}
	second := testbed.StartEtcd(t)
	for i := range 200 { // the main etcd is far ahead
		b.etcd.Write(event("left"), fmt.Sprint(i))
	}
	b.hub = startHub(t, b.etcd, b.nats.Connect(), override(second, events))
	ofSecond(t, b.hub)
	b.untilPublishing(t, b.hub)
	ofPods := listen(t, b)
	now := second.Write(event("now"), "now")
	source := changes.Source{Bus: b.nats.Connect(), Hub: &deaf{b.hub, 1}, Silence: time.Hour}
	for through := int64(0); through < now; { // the one replay is to have it
		page, err := b.hub.Replay(t.Context(), services.ReplayRequest{GroupResource: events})
		if err != nil {
			t.Fatal(err)
		}
		through = page.Through
	}
	ofEvents, err := source.Follow(t.Context(), events, now-1)
	if err != nil {
		t.Fatal(err)
	}
	if heard := reach(t, ofEvents, now); len(heard) != 1 || heard[0].Object.Key != event("now") {
		t.Fatalf("replayed %+v", heard)
	}
	for i := range 50 {
		pod := b.etcd.Write(pod(fmt.Sprint("p", i)), "value")
		b.etcd.Write(event("left"), "value")
		e := second.Write(event(fmt.Sprint("e", i)), "value")
		if i%10 == 0 {
			for _, signal := range b.hub.election.signals { // all tell their progress
				signal <- struct{}{}
			}
		}
		if heard := reach(t, ofPods, pod); len(heard) != 1 {
			t.Fatalf("%d changes of pods, want 1: %+v", len(heard), heard)
		}
		if heard := reach(t, ofEvents, e); len(heard) != 1 || heard[0].Object.Key.Name != fmt.Sprint("e", i) {
			t.Fatalf("%d changes of events, want 1: %+v", len(heard), heard)
		}
	}
	// Revisions without an object arrive as progress of the same etcd.
	response, err := second.Put(t.Context(), "/elsewhere", "value")
	if err != nil {
		t.Fatal(err)
	}
	reach(t, ofEvents, response.Header.Revision)
}

// TestIdleEtcdIsHeard: an etcd in which nothing is written does not count as silent.
func TestIdleEtcdIsHeard(t *testing.T) {
	hub := startHub(t, testbed.StartEtcd(t), testbed.StartNATS(t).Connect(), override(testbed.StartEtcd(t), resource.GroupResource{Resource: "events"}))
	apart := ofSecond(t, hub)
	begun, deadline := apart.heard.Load(), time.After(followTimeout)
	ticks := time.NewTicker(progressEvery / 10)
	defer ticks.Stop()
	for apart.heard.Load() == begun {
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatal("nothing is heard of an etcd without writes")
		}
	}
}
