package watchhub

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/seal"
)

// TestDeadPublisher: the hub that holds the leadership is dead, and its lease outlasts
// the test. Another hub takes over.
func TestDeadPublisher(t *testing.T) {
	b := newRig(t)
	second := startHub(t, b.etcd, b.nats.Connect(), func(c *Config) { c.Name = "second" })
	b.hub.stop()
	seat(t, b.etcd, "stranger")
	began := time.Now()
	b.untilPublishing(t, second)
	t.Logf("the second hub publishes after %v", time.Since(began))
}

// linked starts a second hub, which stands by, behind a proxy to NATS.
func linked(t *testing.T, b *rig) (runningHub, *lossy.Proxy) {
	t.Helper()
	link := lossy.New(t, b.bus.ConnectedAddr())
	conn, err := nats.Connect("nats://"+link.Address(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return startHub(t, b.etcd, conn, func(c *Config) { c.Name = "linked" }), link
}

// linkedLeader lets that hub publish, and the rig's stand by.
func linkedLeader(t *testing.T, b *rig) (runningHub, *lossy.Proxy) {
	t.Helper()
	leader, link := linked(t, b)
	b.hub.stop()
	b.untilPublishing(t, leader)
	b.hub = startHub(t, b.etcd, b.bus, nil)
	return leader, link
}

// returned is how many heartbeats of a hub have come back to it.
func (h runningHub) returned() int64 {
	h.beats.mu.Lock()
	defer h.beats.mu.Unlock()
	return h.beats.own
}

// stays waits for some heartbeats of a standby, and checks that it remains one.
func stays(t *testing.T, standby runningHub, heartbeats int) {
	t.Helper()
	if !remains(standby, heartbeats) {
		t.Fatal("the standby has taken over")
	}
}

func remains(standby runningHub, heartbeats int) bool {
	for until := standby.returned() + int64(heartbeats); standby.returned() < until; {
		if standby.election.leads() {
			return false
		}
		<-time.After(heartbeatEvery / 4)
	}
	return true
}

// TestSlowPublisher: the heartbeats of the publishing hub are late, and stall again and
// again for less than the others' patience. It keeps the leadership.
func TestSlowPublisher(t *testing.T) {
	for range 5 {
		if slowPublisher(t) {
			return
		}
	}
	t.Skip("this machine is too busy for stalls of a known length")
}

// slowPublisher returns false if the standby has taken over because a stall was as long as its
// patience: nothing has ended the stall in time.
func slowPublisher(t *testing.T) bool {
	t.Helper()
	b := newRig(t)
	leader, link := linkedLeader(t, b)
	link.Delay(150 * time.Millisecond)
	stays(t, b.hub, 20)
	link.Heal()
	for range 5 {
		before := b.hub.returned()
		link.BlackHole()
		kept := remains(b.hub, 1)
		link.Heal()
		// What was under way before, and what comes after, may be two more heartbeats.
		stalled := b.hub.returned() - before + 2
		if kept = kept && remains(b.hub, missedHeartbeats); kept {
			continue
		}
		if stalled >= missedHeartbeats {
			return false
		}
		t.Fatalf("the standby has taken over: no heartbeat came for %d of its own", stalled)
	}
	if !leader.election.leads() {
		t.Error("the slow hub has lost the leadership")
	}
	return true
}

// TestCutOffPublisher: the publishing hub reaches etcd, so that its lease does not expire,
// but not NATS. The other one takes over and keeps the leadership when the first one is
// back.
func TestCutOffPublisher(t *testing.T) {
	b := newRig(t)
	leader, link := linkedLeader(t, b)
	stays(t, b.hub, missedHeartbeats) // it knows the leader
	link.BlackHole()
	b.untilPublishing(t, b.hub)
	link.Heal()
	stays(t, leader, 3*missedHeartbeats)
	if !b.hub.election.leads() {
		t.Error("the leadership has gone back")
	}
}

// TestCutOffStandby: it is the standby that is cut off from NATS, and frozen in effect.
// That is not the publishing hub's fault.
func TestCutOffStandby(t *testing.T) {
	b := newRig(t)
	standby, link := linked(t, b)
	stays(t, standby, 1)
	for range 3 {
		link.BlackHole()
		<-time.After(2 * missedHeartbeats * heartbeatEvery)
		if standby.election.leads() {
			t.Fatal("a hub that receives nothing has taken over")
		}
		link.Heal()
		stays(t, standby, 2*missedHeartbeats)
	}
}

// TestHeartbeatsAreGenuine: copies of old heartbeats, and what others send, count neither
// for the publishing hub nor for the standby.
func TestHeartbeatsAreGenuine(t *testing.T) {
	master := func() *seal.Master {
		m, err := seal.NewMaster(seal.NewSecret())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	ours := master()
	h := newHeartbeats(nil, func() *seal.Master { return ours }, slog.New(slog.DiscardHandler))
	now := time.Now()
	own := func(n int64) {
		now = now.Add(heartbeatEvery)
		h.note(heartbeat{Run: h.run, N: n}, now)
	}
	silent := h.await(7, 3)
	over := func() bool {
		select {
		case <-silent:
			return true
		default:
			return false
		}
	}
	h.note(heartbeat{Run: "leader", N: 5, Term: 7}, now)
	for range 10 {
		own(1) // repeated
	}
	if over() {
		t.Fatal("copies of its own heartbeat have made the hub take over")
	}
	for n := range int64(10) { // delayed, all at once
		h.note(heartbeat{Run: h.run, N: 2 + n}, now)
	}
	if over() {
		t.Fatal("heartbeats that arrived together have made the hub take over")
	}
	h.note(heartbeat{Run: "leader", N: 5, Term: 7}, now) // a copy
	h.note(heartbeat{Run: "leader", N: 50, Term: 6}, now)
	h.note(heartbeat{Run: "other", N: 50}, now)
	own(20)
	own(21)
	if !over() {
		t.Error("heartbeats of the past have kept a silent hub in the leadership")
	}

	theirs := master()
	forged, err := seal.NewSealer(theirs).Seal(nil, subjectHeartbeat, []byte(`{"run":"leader","n":9,"term":7}`))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := seal.NewSealer(ours).Seal(nil, "changes.core.pods", []byte(`{"run":"leader","n":9,"term":7}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range [][]byte{nil, []byte(`{"run":"leader","n":9,"term":7}`), forged, elsewhere} {
		if b, err := h.open(message); err == nil {
			t.Errorf("accepted %+v", b)
		}
	}
	genuine, err := seal.NewSealer(ours).Seal(nil, subjectHeartbeat, []byte(`{"run":"leader","n":9,"term":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := h.open(genuine); err != nil || b != (heartbeat{Run: "leader", N: 9, Term: 7}) {
		t.Errorf("%+v, %v", b, err)
	}
}
