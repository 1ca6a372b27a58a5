package store

import (
	"context"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/store/embedded"
)

func TestContract(t *testing.T) {
	open := func(t *testing.T) services.Store { return replica(t, openEtcd(t)) }
	kittest.LocalAndRemote(t, contract.Store, open, contracttest.Store)
}

// TestContractOverEtcdServers runs the contract suite on an etcd over the network.
func TestContractOverEtcdServers(t *testing.T) {
	contracttest.Store(t, func(t *testing.T) services.Store { return replica(t, dialEtcd(t)) })
}

// dialEtcd starts an etcd for one test and connects to it over the network.
func dialEtcd(t testing.TB) *clientv3.Client {
	t.Helper()
	return dial(t, serveEtcd(t, func(*embed.Config) {}))
}

// serveEtcd starts an etcd for one test and returns its address.
func serveEtcd(t testing.TB, change func(*embed.Config)) string {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.Logger, c.LogOutputs = t.TempDir(), "panic", "zap", []string{"/dev/null"}
	loopback := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.ListenPeerUrls, c.ListenClientUrls = nil, []url.URL{loopback}
	c.TickMs, c.ElectionMs = 10, 100
	change(c)
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.Clients[0].Addr().String()
}

// dial connects to an etcd like the store.
func dial(t testing.TB, address string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop(), DialOptions: etcd.DialOptions()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// openEtcd starts an etcd for one test in this process.
func openEtcd(t testing.TB) *clientv3.Client {
	t.Helper()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.Client
}

// replica starts a store over an etcd and waits until it is ready.
func replica(t testing.TB, client *clientv3.Client) *Store {
	t.Helper()
	s := New(Config{
		Client: client, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		FutureWait: 50 * time.Millisecond,
	})
	await(t, s)
	return s
}

var discard = slog.New(slog.DiscardHandler)

// await runs a store until the test ends, and waits until it is ready.
func await(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("the store does not become ready")
	}
}
