package watchhub

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
)

// TestReplayWhileNATSDoesNotRead: the NATS server does not read, and the client's writes wait for it, a
// minute by default. The window follows etcd in the meantime, and followers get everything afterwards.
func TestReplayWhileNATSDoesNotRead(t *testing.T) {
	b := newRig(t)
	leader, link := linkedLeader(t, b)
	b.hub.stop() // it would take over
	b.etcd.Write(pod("before"), "before")
	link.BlackHole()
	began, last := time.Now(), int64(0)
	value := strings.Repeat("x", 512<<10)
	for range 64 { // more than the buffers of sockets, client and outbox
		last = b.etcd.Write(pod("large"), value)
	}
	for after := last - 1; ; {
		ctx, cancel := context.WithTimeout(t.Context(), followTimeout)
		answer, err := leader.Replay(ctx, services.ReplayRequest{GroupResource: pods, After: after})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if answer.Through >= last {
			break
		}
		if took := time.Since(began); took > 40*time.Second { // the default of the client is a minute
			t.Fatalf("the window is at %d of %d after %v", answer.Through, last, took)
		}
		<-time.After(10 * time.Millisecond)
	}
	link.Heal()
	source := changes.Source{Bus: b.nats.Connect(), Hub: leader}
	stream, err := source.Follow(t.Context(), pods, last-1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	reach(t, stream, b.etcd.Write(pod("after"), "after"))
}
