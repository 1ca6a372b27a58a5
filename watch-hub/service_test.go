package watchhub

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/watch-hub/embedded"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// parts returns a process with an etcd, the embedded NATS and the hub, and a service that
// follows changes.
func parts(t *testing.T, member *testbed.Etcd, source *changes.Source) run.App {
	t.Helper()
	return run.App{Name: "test", Services: []run.Service{
		{
			Name: "etcd", Offers: []run.Dependency{etcd.Client},
			Start: func(_ context.Context, n *run.Node) error {
				etcd.Client.Offer(n, member.Client)
				return nil
			},
		},
		embedded.Service(),
		Service(),
		{
			Name: "follower", Needs: []run.Dependency{bus.Conn, contract.WatchHub},
			Start: func(ctx context.Context, n *run.Node) (err error) {
				if source.Bus, err = bus.Conn.Use(ctx, n); err != nil {
					return err
				}
				source.Hub, err = contract.WatchHub.Use(ctx, n)
				return err
			},
		},
	}}
}

func TestServiceInOneProcess(t *testing.T) {
	member := testbed.StartEtcd(t)
	first := member.Write(pod("a"), "before")
	var source changes.Source
	running, err := run.Start(t.Context(), parts(t, member, &source), []string{"--log-level=error"})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := source.Follow(t.Context(), pods, first-1)
	if err != nil {
		t.Fatal(err)
	}
	last := member.Write(pod("a"), "after")
	if heard := reach(t, stream, last); len(heard) != 2 {
		t.Errorf("heard %d changes, want 2", len(heard))
	}
	if limit := source.Bus.MaxPayload(); limit < 4<<20 {
		t.Errorf("the embedded NATS takes messages of %d bytes at most", limit)
	}
	running.Stop()
	if !source.Bus.IsClosed() {
		t.Error("the connection to NATS is left open")
	}
	if _, err := source.Follow(t.Context(), pods, last); !services.IsReason(err, services.ReasonServiceUnavailable) {
		t.Errorf("error %v after the end, want Unavailable", err)
	}
	if err := source.Bus.Publish("any", nil); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("published after the end: %v", err)
	}
}

func TestServiceRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--watch-history=10ms"}, {"--etcd-compaction-interval=10ms"}, {"--watch-history=long"}, {"--watch-history-bytes=-1"},
	} {
		var source changes.Source
		running, err := run.Start(t.Context(), parts(t, testbed.StartEtcd(t), &source), append(args, "--log-level=error"))
		if !errors.Is(err, run.ErrUsage) {
			t.Errorf("%v: error %v, want one of usage", args, err)
		}
		if running != nil {
			running.Stop()
		}
	}
}
