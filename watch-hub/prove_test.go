package watchhub

import (
	"testing"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// TestWatchOfAHungMemberIsOpenedAgain hangs the watch of the hub, and the next one before it is created:
// followers get a later change.
func TestWatchOfAHungMemberIsOpenedAgain(t *testing.T) {
	watches := &lossy.Streams{Method: "Watch/Watch"}
	b := &rig{etcd: testbed.StartRemoteEtcd(t, watches.Option()), nats: testbed.StartNATS(t)}
	b.bus = b.nats.Connect()
	b.hub = startHub(t, b.etcd, b.bus, nil)
	b.untilPublishing(t, b.hub)
	stream := listen(t, b)
	watches.Hang(1)
	reach(t, stream, b.etcd.Write(pod("after"), "after"))
	if watches.Left() != 0 {
		t.Error("only one watch has hung")
	}
}
