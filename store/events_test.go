package store

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
)

// leases waits until etcd has n leases.
func leases(t *testing.T, client *clientv3.Client, n int) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		answer, err := client.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Leases) == n {
			return
		} else if time.Now().After(until) {
			t.Fatalf("%d leases, want %d", len(answer.Leases), n)
		}
	}
}

// TestEventsExpire: Events that are not written again are deleted, each at a revision of its own, and other
// objects are not.
func TestEventsExpire(t *testing.T) {
	client := openEtcd(t)
	keeps := func(ttl time.Duration) *Store {
		s := New(Config{Client: client, EventTTL: ttl, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
		await(t, s)
		return s
	}
	s := keeps(time.Hour) // while leases are counted, none ends
	kept := create(t, s, "kept")
	const n = 5
	events := make([]services.Object, n+1)
	add := func(s *Store, i int) {
		t.Helper()
		key := resource.Key{GroupResource: resource.GroupResource{Resource: "events"}, Namespace: "default", Name: fmt.Sprint(i)}
		var err error
		if events[i], err = s.Create(t.Context(), services.CreateRequest{Key: key, Content: content(key.Name, "0")}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(s *Store, i int, value string) {
		t.Helper()
		var err error
		if events[i], err = s.Update(t.Context(), services.UpdateRequest{Key: events[i].Key, Revision: events[i].Revision, Content: content(events[i].Key.Name, value)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		add(s, i)
	}
	last := &events[n-1]
	for range 10 { // repeated writes hold one lease, and those that fail none
		write(s, n-1, "1")
		if _, err := s.Create(t.Context(), services.CreateRequest{Key: last.Key, Content: content(last.Key.Name, "0")}); !services.IsReason(err, services.ReasonAlreadyExists) {
			t.Fatalf("got %v, want AlreadyExists", err)
		}
	}
	leases(t, client, n)
	changes := client.Watch(t.Context(), resource.Key{GroupResource: last.Key.GroupResource, Namespace: "default"}.Path(),
		clientv3.WithPrefix(), clientv3.WithRev(last.Revision+1), clientv3.WithFilterPut())
	hasty := keeps(4 * time.Second)
	add(hasty, n)
	for i := range n { // once each: none can have ended before it is written
		write(hasty, i, "2")
	}
	revisions := map[int64]bool{}
	for len(revisions) < len(events) {
		for _, e := range (<-changes).Events {
			if revisions[e.Kv.ModRevision] {
				t.Fatal("two events were deleted at one revision")
			}
			revisions[e.Kv.ModRevision] = true
		}
	}
	leases(t, client, 0)
	if _, err := s.Get(t.Context(), services.GetRequest{Key: last.Key}); !services.IsReason(err, services.ReasonNotFound) {
		t.Errorf("an expired event: %v", err)
	}
	if _, err := s.Get(t.Context(), services.GetRequest{Key: kept.Key}); err != nil {
		t.Errorf("another object: %v", err)
	}
}

// TestOnlyEventsExpire: only the type that holds the Events of both groups has a lease.
func TestOnlyEventsExpire(t *testing.T) {
	s := New(Config{Client: openEtcd(t), EventTTL: time.Hour, Log: discard, Metrics: prometheus.NewRegistry()})
	for gr, want := range map[resource.GroupResource]time.Duration{
		eventType: time.Hour,
		{Group: "events.k8s.io", Resource: "events"}:             0,
		{Group: "events.", Resource: "events"}:                   0,
		{Resource: "events", Custom: true}:                       0,
		{Group: "example.com", Resource: "events", Custom: true}: 0,
		{Resource: "pods"}:                                       0,
	} {
		if got := s.main.ttl(resource.Key{GroupResource: gr, Namespace: "default", Name: "e"}); got != want {
			t.Errorf("%s: %v, want %v", gr, got, want)
		}
	}
}

func TestEventTTLFlag(t *testing.T) {
	for value, ok := range map[string]bool{"0": true, "2s": true, "1h": true, "1s": false, "-1h": false} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags(fs)
		if err := fs.Parse([]string{"--event-ttl=" + value}); err != nil {
			t.Fatal(err)
		}
		if _, err := eventTTL(&run.Node{Flags: fs}); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "--event-ttl") {
			t.Errorf("%s: %v", value, err)
		}
	}
}
