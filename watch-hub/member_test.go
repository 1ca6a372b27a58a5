package watchhub

import (
	"fmt"
	"log/slog"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// TestOneHungMember hangs one of two members of etcd: the hub goes on to publish, without losing the
// leadership, whatever of it used that member.
func TestOneHungMember(t *testing.T) {
	direct, nats := testbed.StartRemoteEtcd(t), testbed.StartNATS(t)
	address := direct.Endpoints()[0]
	link := lossy.New(t, address)
	client, err := etcd.Connect(clientv3.Config{
		Endpoints: []string{link.Address(), address}, Logger: zap.NewNop(), DialOptions: etcd.DialOptions(),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	hub := startHub(t, direct, nats.Connect(), func(c *Config) { c.Etcd = client })
	(&rig{etcd: direct, nats: nats}).untilPublishing(t, hub)
	now := direct.Write(pod("now"), "now")
	stream, err := changes.Source{Bus: nats.Connect(), Hub: hub}.Follow(t.Context(), pods, now-1)
	if err != nil {
		t.Fatal(err)
	}
	reach(t, stream, now)
	term := publisherSince(t, direct)
	link.BlackHole()
	for i := 0; i < 50 || len(client.Endpoints()) == 2; i++ {
		reach(t, stream, direct.Write(pod(fmt.Sprint("p", i)), "value"))
	}
	if later := publisherSince(t, direct); later != term {
		t.Errorf("the hub has lost the leadership of revision %d, and has that of %d", term, later)
	}
}

// publisherSince returns the revision at which the leadership was taken.
func publisherSince(t *testing.T, etcd *testbed.Etcd) int64 {
	t.Helper()
	response, err := etcd.Get(t.Context(), publisherKey)
	if err != nil || response.Count != 1 {
		t.Fatalf("the leadership: %+v, %v", response, err)
	}
	return response.Kvs[0].ModRevision
}
