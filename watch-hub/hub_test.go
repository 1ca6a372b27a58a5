package watchhub

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

var pods = resource.GroupResource{Resource: "pods"}

func pod(name string) resource.Key {
	return resource.Key{GroupResource: pods, Namespace: "ns", Name: name}
}

// reach reads from a stream through a revision, and returns the changes.
func reach(t *testing.T, stream *changes.Stream, through int64) (heard []services.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), followTimeout)
	defer cancel()
	for {
		batch, err := stream.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for %d: %v", through, err)
		}
		if heard = append(heard, batch.Changes...); batch.Through >= through {
			return heard
		}
	}
}

// deaf is a hub that serves only the replay at the start of a stream, so that all other
// changes must come from the bus.
type deaf struct {
	services.WatchHub
	answers int
}

func (d *deaf) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	if d.answers == 0 {
		return services.Replay{}, services.Unavailable("deaf")
	}
	d.answers--
	return d.WatchHub.Replay(ctx, r)
}

// listen follows new changes of pods, from the bus only.
func listen(t *testing.T, b *rig) *changes.Stream {
	t.Helper()
	now := b.etcd.Write(pod("now"), "now")
	source := changes.Source{Bus: b.nats.Connect(), Hub: &deaf{b.hub, math.MaxInt}, Silence: time.Hour}
	stream, err := source.Follow(t.Context(), pods, now-1)
	if err != nil {
		t.Fatal(err)
	}
	reach(t, stream, now)
	source.Hub.(*deaf).answers = 0
	return stream
}

func newRig(t *testing.T) *rig {
	b := &rig{etcd: testbed.StartEtcd(t), nats: testbed.StartNATS(t)}
	b.bus = b.nats.Connect()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.untilPublishing(t, b.hub)
	return b
}

// untilPublishing waits until a hub is the publisher.
func (b *rig) untilPublishing(t *testing.T, hub runningHub) {
	t.Helper()
	sub, err := b.nats.Connect().SubscribeSync(changes.SubjectProgress)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for !hub.election.leads() {
		if _, err := sub.NextMsg(followTimeout); err != nil && !hub.election.leads() {
			t.Fatalf("the hub does not publish: %v", err)
		}
	}
}

func TestBusIsEnough(t *testing.T) {
	b := newRig(t)
	stream := listen(t, b)
	last := int64(0)
	for i := range 100 {
		last = b.etcd.Write(pod(fmt.Sprint("p", i)), "value")
	}
	if heard := reach(t, stream, last); len(heard) != 100 {
		t.Errorf("heard %d changes, want 100", len(heard))
	}
	// Revisions without an object arrive as progress.
	response, err := b.etcd.Put(t.Context(), "/elsewhere", "value")
	if err != nil {
		t.Fatal(err)
	}
	reach(t, stream, response.Header.Revision)
}

func TestAnotherHubPublishesOn(t *testing.T) {
	b := newRig(t)
	second := startHub(t, b.etcd, b.nats.Connect(), func(c *Config) { c.Name = "second" })
	if second.election.leads() || !b.hub.election.leads() {
		t.Fatal("the second hub took over from one that lives")
	}
	stream := listen(t, b)
	b.hub.stop()
	b.untilPublishing(t, second)
	revision := b.etcd.Write(pod("a"), "value")
	if heard := reach(t, stream, revision); len(heard) != 1 {
		t.Errorf("heard %d changes, want 1", len(heard))
	}
}

func TestHubSucceedsItself(t *testing.T) {
	b := newRig(t)
	b.hub.stop()
	seat(t, b.etcd, "hub")
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.untilPublishing(t, b.hub) // the other hub's lease does not expire during the test
}

func TestHubGivesUpItsOffice(t *testing.T) {
	b := newRig(t)
	seat(t, b.etcd, "stranger")
	sub, err := b.nats.Connect().SubscribeSync(changes.SubjectProgress)
	if err != nil {
		t.Fatal(err)
	}
	for b.hub.election.leads() {
		_, _ = sub.NextMsg(10 * time.Millisecond)
	}
	if _, err := b.etcd.Delete(t.Context(), publisherKey); err != nil {
		t.Fatal(err)
	}
	b.untilPublishing(t, b.hub)
}

// TestPublisherOfNothing: the hub that holds the leadership lives, but does not receive
// what etcd sends, and publishes no change. Followers receive what they miss.
func TestPublisherOfNothing(t *testing.T) {
	b := newRig(t)
	term := seat(t, b.etcd, "stranger") // whose lease outlasts the test
	beats := newHeartbeats(b.nats.Connect(), b.hub.keys.Current, b.hub.config.Log)
	beats.lead(term)
	go beats.exchange(t.Context())
	sub, err := b.nats.Connect().SubscribeSync(changes.SubjectProgress)
	if err != nil {
		t.Fatal(err)
	}
	for b.hub.election.leads() {
		_, _ = sub.NextMsg(10 * time.Millisecond)
	}
	now := b.etcd.Write(pod("before"), "value")
	stream, err := changes.Source{Bus: b.nats.Connect(), Hub: b.hub, Silence: time.Hour}.Follow(t.Context(), pods, now-1)
	if err != nil {
		t.Fatal(err)
	}
	reach(t, stream, now)
	for i := range 3 {
		revision := b.etcd.Write(pod(fmt.Sprint("p", i)), "value")
		if heard := reach(t, stream, revision); len(heard) != 1 {
			t.Errorf("heard %d changes, want 1", len(heard))
		}
	}
	if b.hub.election.leads() {
		t.Error("the hub has taken the leadership: the test shows nothing")
	}
}

func TestLargeChangesAreFetched(t *testing.T) {
	b := newRig(t)
	after := b.etcd.Write(pod("small"), "value")
	source := changes.Source{Bus: b.nats.Connect(), Hub: b.hub, Silence: time.Hour}
	stream, err := source.Follow(t.Context(), pods, after)
	if err != nil {
		t.Fatal(err)
	}
	revision := b.etcd.Write(pod("large"), strings.Repeat("x", 1_300_000)) // larger than a NATS message
	if heard := reach(t, stream, revision); len(heard) != 1 || len(heard[0].Object.JSON) < 1_300_000 {
		t.Errorf("heard %d changes", len(heard))
	}
}

func TestHistorySurvivesTheHub(t *testing.T) {
	b := newRig(t)
	first := b.etcd.Write(pod("a"), "one")
	b.hub.stop()
	last := b.etcd.Write(pod("a"), "two")
	b.hub = startHub(t, b.etcd, b.bus, nil)
	r, err := b.hub.Replay(t.Context(), services.ReplayRequest{GroupResource: pods, After: first - 1})
	if err != nil || len(r.Changes) != 2 || r.Through < last {
		t.Errorf("replayed %+v, %v", r, err)
	}
}

func TestHubIsNotReadyTooEarly(t *testing.T) {
	hub := New(Config{Etcd: testbed.StartEtcd(t).Client, History: time.Hour})
	if _, err := hub.Replay(t.Context(), services.ReplayRequest{GroupResource: pods}); !services.IsReason(err, services.ReasonServiceUnavailable) {
		t.Errorf("error %v, want Unavailable", err)
	}
}

func TestCompactionFollowsTheHistory(t *testing.T) {
	b := newRig(t)
	start := time.Now()
	var revisions []int64
	write := func() {
		t.Helper()
		revision := b.etcd.Write(pod("a"), fmt.Sprint("value", len(revisions)))
		revisions = append(revisions, revision)
		stream, err := (changes.Source{Bus: b.bus, Hub: b.hub}).Follow(t.Context(), pods, revision-1)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		reach(t, stream, revision)
	}
	compact := func(age time.Duration) {
		t.Helper()
		if err := b.hub.main.compactAt(t.Context(), start.Add(age)); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(revision int64) bool {
		_, err := b.etcd.Get(t.Context(), "any", clientv3.WithRev(revision))
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
		return err == nil
	}
	for i := range 5 {
		write()
		compact(time.Duration(i) * 20 * time.Minute) // marks at 0, 20, 40, 60, 80 minutes
	}
	if holds(revisions[1]-1) || !holds(revisions[1]) {
		t.Error("after 80 minutes, what was the past 20 minutes after the start should just be held")
	}
	b.hub.stop()
	b.hub = startHub(t, b.etcd, b.bus, nil) // loads the marks
	compact(105 * time.Minute)
	if !holds(revisions[1]) {
		t.Error("after a restart, the age of marks is taken from the clock of the hub before")
	}
	compact(165 * time.Minute)
	if holds(revisions[4] - 1) {
		t.Error("after a restart, the marks do not age")
	}
	if _, err := b.hub.Replay(t.Context(), services.ReplayRequest{GroupResource: pods, After: revisions[0]}); err == nil {
		// The window may hold more than etcd; once it does not, this has expired.
		forget(t, b.etcd, b.hub.main, revisions[3])
	}
	_, err := b.hub.Replay(t.Context(), services.ReplayRequest{GroupResource: pods, After: revisions[0]})
	if !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("error %v, want Expired", err)
	}
}

func TestCompactionRestsWhenNothingHappens(t *testing.T) {
	b := newRig(t)
	b.etcd.Write(pod("a"), "value")
	now := time.Now()
	for range 3 { // a mark, a compaction, and then nothing
		now = now.Add(2 * b.hub.config.History)
		if err := b.hub.main.compactAt(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	before := newest(t, b.etcd)
	if err := b.hub.main.compactAt(t.Context(), now.Add(2*b.hub.config.History)); err != nil {
		t.Fatal(err)
	}
	if after := newest(t, b.etcd); after != before {
		t.Errorf("revision %d after %d", after, before)
	}
}

func TestHubFindsItsWayAfterCompaction(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	var revisions []int64
	for i := range 5 {
		revisions = append(revisions, etcd.Write(pod("a"), fmt.Sprint("value", i)))
	}
	if _, err := etcd.Compact(t.Context(), revisions[2]); err != nil {
		t.Fatal(err)
	}
	hub := startHub(t, etcd, testbed.StartNATS(t).Connect(), nil)
	r, err := hub.Replay(t.Context(), services.ReplayRequest{GroupResource: pods, After: revisions[2]})
	if err != nil || len(r.Changes) != 2 {
		t.Errorf("replayed %+v, %v", r, err)
	}
	_, err = hub.Replay(t.Context(), services.ReplayRequest{GroupResource: pods, After: revisions[1]})
	if !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("error %v, want Expired", err)
	}
}

// newest returns etcd's revision.
func newest(t *testing.T, etcd *testbed.Etcd) int64 {
	t.Helper()
	answer, err := etcd.Get(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Revision
}
