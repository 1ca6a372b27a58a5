package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/retry"
)

// dialMembers connects to several members of an etcd like the store.
func dialMembers(t *testing.T, members []string, options ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	client, err := etcd.Connect(clientv3.Config{Endpoints: members, Logger: zap.NewNop(), DialOptions: append(etcd.DialOptions(), options...)}, discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestWatchOfAHungMemberIsOpenedAgain hangs the watch of the store, and the next one before it is
// created: a most-recent read sees a later write of another store, within the time that reads wait.
func TestWatchOfAHungMemberIsOpenedAgain(t *testing.T) {
	address := serveEtcd(t, func(*embed.Config) {})
	watches := &lossy.Streams{Method: "Watch/Watch"}
	s := New(Config{Client: dialMembers(t, []string{address}, watches.Option()), Log: discard, Metrics: prometheus.NewRegistry()})
	await(t, s)
	direct := replica(t, dial(t, address))
	create(t, s, "before")
	if _, err := s.Get(t.Context(), services.GetRequest{Key: pod("before")}); err != nil {
		t.Fatal(err)
	}
	watches.Hang(1)
	create(t, direct, "after")
	if _, err := s.Get(t.Context(), services.GetRequest{Key: pod("after")}); err != nil {
		t.Error(err)
	}
	if since := s.main.mirror.Status().Stalled; !since.IsZero() || watches.Left() != 0 {
		t.Errorf("the mirror does not follow etcd since %v; %d watches still hang", since, watches.Left())
	}
}

// TestOneHungMember hangs one of two members, one that keeps its connections: etcd is not away, and
// most-recent reads and writes succeed. A write that was sent to the member may get 503, with its outcome
// determined: nothing was written. The member is used again when it responds.
func TestOneHungMember(t *testing.T) {
	address := serveEtcd(t, func(*embed.Config) {})
	link := lossy.New(t, address)
	client := dialMembers(t, []string{link.Address(), address})
	s := New(Config{Client: client, Log: discard, Metrics: prometheus.NewRegistry()})
	await(t, s)
	link.BlackHole()
	writes, refused := 0, 0
	for writes < 20 || len(client.Endpoints()) == 2 {
		key := pod(fmt.Sprint("held", writes))
		_, err := s.Create(t.Context(), services.CreateRequest{Key: key, Content: content(key.Name, "0")})
		if services.IsReason(err, services.ReasonServiceUnavailable) {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("a write after %d others: %v", writes, err)
		}
		writes++
		if _, err := s.Get(t.Context(), services.GetRequest{Key: key}); err != nil {
			t.Fatalf("a most-recent read after %d others: %v", writes, err)
		}
	}
	if refused > 1 {
		t.Errorf("%d writes were refused: they follow one another, so only one can have been sent to the member", refused)
	}
	if lost := s.main.mirror.Contact().Losses(); lost != 0 {
		t.Errorf("etcd was away %d times although a member responds", lost)
	}
	link.Heal()
	for len(client.Endpoints()) < 2 {
		if !retry.Pause(t.Context(), 10*time.Millisecond) {
			t.Fatal("the member is not used again")
		}
	}
	t.Logf("%d writes, %d refused", writes, refused)
}
