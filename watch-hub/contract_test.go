package watchhub

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

func TestContract(t *testing.T) {
	open := func(t *testing.T) contracttest.HubSetup {
		etcd := testbed.StartEtcd(t)
		hub := startHub(t, etcd, testbed.StartNATS(t).Connect(), nil)
		return contracttest.HubSetup{
			Hub: hub, Write: etcd.Write, Delete: etcd.Remove,
			Forget: func(through int64) { forget(t, etcd, hub.main, through) },
		}
	}
	t.Run("direct", func(t *testing.T) { contracttest.WatchHub(t, open) })
	t.Run("carried", func(t *testing.T) {
		contracttest.WatchHub(t, func(t *testing.T) contracttest.HubSetup {
			setup := open(t)
			setup.Hub = kittest.Remote(t, contract.WatchHub, setup.Hub)
			return setup
		})
	})
}

// forget compacts etcd and drops the changes of the window through a revision.
func forget(t *testing.T, etcd *testbed.Etcd, f *follower, through int64) {
	t.Helper()
	if _, err := etcd.Compact(context.Background(), through); err != nil {
		t.Fatal(err)
	}
	f.window.Expire(time.Now().Add(2 * f.config.History))
	if floor, _ := f.window.Span(); floor < through {
		t.Fatalf("the window begins at %d, want %d at least", floor, through)
	}
}

// runningHub is a hub that can be stopped before the test ends.
type runningHub struct {
	*Hub
	stop func()
}

// startHub starts a hub and waits until it is ready. change may adjust its
// configuration.
func startHub(t testing.TB, etcd *testbed.Etcd, bus *nats.Conn, change func(*Config)) runningHub {
	t.Helper()
	config := Config{
		Etcd: etcd.Client, Bus: bus, Name: "hub", History: time.Hour, WindowBytes: 64 << 20, KeyLifetime: time.Hour,
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&config)
	}
	hub := New(config)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-hub.Ready():
	case <-time.After(20 * time.Second):
		t.Fatal("the hub does not become ready")
	}
	return runningHub{hub, stop}
}
