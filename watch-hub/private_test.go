package watchhub

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// privateRig is a rig of one process: its bus has no port.
func privateRig(t *testing.T) (b *rig, messages *nats.Subscription) {
	b = &rig{etcd: testbed.StartEtcd(t), nats: testbed.StartNATS(t)}
	b.bus = b.nats.ConnectPrivately()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.untilPublishing(t, b.hub)
	other := b.nats.Connect()
	messages, err := other.SubscribeSync(changes.Subject(pods))
	if err == nil {
		err = other.Flush() // the server knows of it
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := messages.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}
	return b, messages
}

// TestOneProcessSharesChanges: in one process a follower is woken without a message, and has the
// very bytes of the window.
func TestOneProcessSharesChanges(t *testing.T) {
	b, messages := privateRig(t)
	source := changes.Source{Bus: b.bus, Hub: b.hub, Silence: time.Hour}
	first := b.etcd.Write(pod("first"), "value")
	stream, err := source.Follow(t.Context(), pods, first-1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	reach(t, stream, first)
	var last int64
	for i := range 100 {
		last = b.etcd.Write(pod(fmt.Sprint("p", i)), "value")
	}
	heard := reach(t, stream, last)
	held, err := b.hub.Replay(t.Context(), services.ReplayRequest{GroupResource: pods, After: first})
	if err != nil || len(heard) != 100 || len(held.Changes) != 100 {
		t.Fatalf("heard %d changes, the window has %d, %v", len(heard), len(held.Changes), err)
	}
	for i, c := range heard {
		if c.Object.Revision != held.Changes[i].Object.Revision || unsafe.SliceData(c.Object.JSON) != unsafe.SliceData(held.Changes[i].Object.JSON) {
			t.Errorf("change %d is a copy, or another one", i)
		}
	}
	if err := b.bus.Publish(changes.Subject(pods), []byte("end")); err != nil {
		t.Fatal(err)
	}
	if m, err := messages.NextMsg(followTimeout); err != nil || string(m.Data) != "end" {
		t.Errorf("%+v was published before, %v", m, err)
	}
}

// TestOneProcessWithoutWindow: a change that the window does not hold is published itself, so that
// followers need not read it from etcd.
func TestOneProcessWithoutWindow(t *testing.T) {
	b, messages := privateRig(t)
	b.hub.main.window.Bound(0)
	defer b.hub.main.window.Bound(1 << 30)
	now := b.etcd.Write(pod("now"), "value")
	if m, err := messages.NextMsg(followTimeout); err != nil || len(m.Data) == 0 {
		t.Errorf("nothing was published, %v", err)
	}
	source := changes.Source{Bus: b.bus, Hub: b.hub, Silence: time.Hour}
	stream, err := source.Follow(t.Context(), pods, now)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var last int64
	for i := range 20 {
		last = b.etcd.Write(pod(fmt.Sprint("p", i)), "value")
	}
	if heard := reach(t, stream, last); len(heard) != 20 {
		t.Errorf("heard %d changes, want 20", len(heard))
	}
}

// TestOneProcessWithoutFollowers: who begins to follow at any moment misses nothing, though nobody
// was woken before.
func TestOneProcessWithoutFollowers(t *testing.T) {
	b, _ := privateRig(t)
	after := b.etcd.Write(pod("first"), "value")
	for range 20 {
		wrote := make(chan int64, 1)
		go func() {
			var last int64
			for i := range 30 {
				last = b.etcd.Write(pod(fmt.Sprint("p", i)), "value")
			}
			wrote <- last
		}()
		stream, err := changes.Source{Bus: b.bus, Hub: b.hub, Silence: time.Hour}.Follow(t.Context(), pods, after)
		if err != nil {
			t.Fatal(err)
		}
		last := <-wrote
		if heard := reach(t, stream, last); len(heard) != 30 {
			t.Errorf("heard %d changes, want 30", len(heard))
		}
		stream.Close()
		after = last
	}
}
