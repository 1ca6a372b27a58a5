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
	for until := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
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
	s := New(Config{Client: client, EventTTL: 2 * time.Second, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	await(t, s)
	event := func(name string) resource.Key {
		return resource.Key{GroupResource: resource.GroupResource{Resource: "events"}, Namespace: "default", Name: name}
	}
	kept := create(t, s, "kept")
	const n = 5
	var last services.Object
	for i := range n {
		var err error
		if last, err = s.Create(t.Context(), services.CreateRequest{Key: event(fmt.Sprint(i)), Content: content(fmt.Sprint(i), "0")}); err != nil {
			t.Fatal(err)
		}
	}
	changes := client.Watch(t.Context(), event("").Path(), clientv3.WithPrefix(), clientv3.WithRev(last.Revision+1), clientv3.WithFilterPut())
	for range 10 { // repeated writes hold one lease, and those that fail none
		var err error
		if last, err = s.Update(t.Context(), services.UpdateRequest{Key: last.Key, Revision: last.Revision, Content: content(last.Key.Name, "1")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), services.CreateRequest{Key: last.Key, Content: content(last.Key.Name, "0")}); !services.IsReason(err, services.ReasonAlreadyExists) {
			t.Fatalf("got %v, want AlreadyExists", err)
		}
	}
	leases(t, client, n)
	revisions := map[int64]bool{}
	for len(revisions) < n {
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
