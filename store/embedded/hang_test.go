package embedded

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store"
)

// TestAHangingMemberIsNotWaitedFor holds the lock of etcd's database, which simulates a
// hanging disk: once that is detected, writes are rejected at once; the write in flight is
// not reported as failed; and the store recovers with the disk.
func TestAHangingMemberIsNotWaitedFor(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	server := open(t, t.TempDir(), log)
	defer server.Close()
	s := store.New(store.Config{Client: server.Client, Log: log, Metrics: prometheus.NewRegistry(), SettleWithin: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-s.Ready()
	create := func(name string) (time.Duration, error) {
		began := time.Now()
		_, err := s.Create(t.Context(), services.CreateRequest{
			Key:     resource.Key{GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: "default", Name: name},
			Content: services.Content{JSON: []byte(`{"metadata":{"name":"` + name + `"}}`), UID: name},
		})
		return time.Since(began), err
	}
	if _, err := create("before"); err != nil {
		t.Fatal(err)
	}
	tx := server.etcd.Server.Backend().BatchTx()
	tx.LockOutsideApply()
	// Three seconds; if it waited for etcd, it would wait for ever.
	if took, err := create("under-way"); !services.IsReason(err, services.ReasonTimeout) || took > 30*time.Second {
		t.Errorf("a write that etcd does not finish: %v after %v, want an unknown outcome", err, took)
	}
	// If it was sent, it would not be a refusal.
	if took, err := create("after"); !services.IsReason(err, services.ReasonServiceUnavailable) || took > 5*time.Second {
		t.Errorf("a write while etcd hangs: %v after %v, want a refusal", err, took)
	}
	if _, err := s.Revision(t.Context(), resource.GroupResource{}); !services.IsReason(err, services.ReasonServiceUnavailable) {
		t.Errorf("a most recent read while etcd hangs: %v, want a refusal", err)
	}
	tx.Unlock()
	for began := time.Now(); ; {
		_, err := s.Revision(t.Context(), resource.GroupResource{})
		if err == nil {
			t.Logf("the store goes on after %v", time.Since(began))
			break
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Fatalf("%v after etcd goes on: %v", took, err)
		}
	}
	if _, err := create("after"); err != nil {
		t.Errorf("a write that was refused, again: %v", err)
	}
}
