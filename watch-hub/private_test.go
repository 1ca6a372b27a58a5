package watchhub

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// privateRig is a rig of one process: its bus has no port.
func privateRig(t *testing.T) (b *rig, published func() []byte) {
	b = &rig{etcd: testbed.StartEtcd(t), nats: testbed.StartNATS(t)}
	b.bus = b.nats.ConnectPrivately()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.untilPublishing(t, b.hub)
	messages, err := b.nats.Connect().SubscribeSync(changes.Subject(pods))
	if err != nil {
		t.Fatal(err)
	}
	if err := messages.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}
	return b, func() []byte {
		t.Helper()
		m, err := messages.NextMsg(followTimeout)
		if err != nil {
			t.Fatal(err)
		}
		return m.Data
	}
}

// TestOneProcessSharesChanges: on the bus of one process a message only says that there are
// changes, and a follower has the very bytes of the window.
func TestOneProcessSharesChanges(t *testing.T) {
	b, published := privateRig(t)
	source := changes.Source{Bus: b.bus, Hub: b.hub, Silence: time.Hour}
	first := b.etcd.Write(pod("first"), "value")
	if data := published(); len(data) != 0 {
		t.Errorf("%d bytes were published", len(data))
	}
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
}

// TestOneProcessWithoutWindow: a change that the window does not hold is published itself, so that
// followers need not read it from etcd.
func TestOneProcessWithoutWindow(t *testing.T) {
	b, published := privateRig(t)
	b.hub.main.window.Bound(0)
	defer b.hub.main.window.Bound(1 << 30)
	now := b.etcd.Write(pod("now"), "value")
	if data := published(); len(data) == 0 {
		t.Error("only a hint was published")
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

// TestOneProcessWithoutFollowers: nothing is published that nobody follows, and who follows from any
// moment on misses nothing.
func TestOneProcessWithoutFollowers(t *testing.T) {
	b := &rig{etcd: testbed.StartEtcd(t), nats: testbed.StartNATS(t)}
	b.bus = b.nats.ConnectPrivately()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.untilPublishing(t, b.hub)
	if bus.Followed(b.bus, changes.Subject(pods)) || !bus.Followed(b.nats.Connect(), changes.Subject(pods)) {
		t.Error("the bus does not know who follows")
	}
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
