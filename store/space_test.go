package store

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/store/embedded"
)

// smallEtcd starts an etcd with a database quota of 16 MiB.
func smallEtcd(t *testing.T) *embedded.Server {
	t.Helper()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), QuotaBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// large returns content of half a MiB.
func large(name string, i int) services.Content {
	return content(name, fmt.Sprint(i, strings.Repeat("x", 512<<10)))
}

// slowDisk reports whether a write was not sent because etcd did not respond, which
// compaction and defragmentation can cause.
func slowDisk(err error) bool { return services.IsReason(err, services.ReasonServiceUnavailable) }

// sent repeats a request that was not sent, for a minute at most.
func sent(request func() error) (err error) {
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if err = request(); !slowDisk(err) || time.Now().After(end) {
			return err
		}
	}
}

// again retries a write until it does not fail for lack of space.
func again(t *testing.T, write func(context.Context) error) (refused int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := write(ctx)
		switch {
		case err == nil:
			return refused
		case services.IsReason(err, services.ReasonInsufficientStorage):
			refused++
		case !slowDisk(err):
			t.Fatalf("after %d refusals: %v", refused, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("still refused after %d times: %v", refused, err)
		}
	}
}

// TestRecoveryFromAFullDatabase: writes are rejected with the reason, reads and deletions
// are not, and after deletions of objects writes are accepted again.
func TestRecoveryFromAFullDatabase(t *testing.T) {
	t.Parallel()
	server := smallEtcd(t)
	s := replica(t, server.Client)
	kept := create(t, s, "kept")
	var stored []services.Object
	var refusal error
	for i := 0; refusal == nil; i++ {
		if i > 100 {
			t.Fatal("a quota of 16 MiB takes 50 MiB")
		}
		name := fmt.Sprint("large", i)
		var o services.Object
		switch o, refusal = s.Create(t.Context(), services.CreateRequest{Key: pod(name), Content: large(name, i)}); {
		case refusal == nil:
			stored = append(stored, o)
		case slowDisk(refusal):
			refusal = nil
		}
	}
	if status := services.AsStatus(refusal); status.Code != 507 || !strings.Contains(status.Message, "quota") {
		t.Errorf("the refusal is %d %s", status.Code, status.Message)
	}
	if err := server.Full(); err == nil || !strings.Contains(err.Error(), "quota") {
		t.Errorf("the member says %v", err)
	}
	for _, o := range append(stored, kept) {
		again(t, func(ctx context.Context) error {
			got, err := s.Get(ctx, services.GetRequest{Key: o.Key})
			if err == nil && got.Revision != o.Revision {
				t.Errorf("what was acknowledged is read as %+v", got)
			}
			return err
		})
	}
	for _, o := range stored {
		if _, err := s.Delete(t.Context(), services.DeleteRequest{Key: o.Key}); err != nil {
			t.Fatalf("deleting while the database is full: %v", err)
		}
	}
	again(t, func(ctx context.Context) error {
		_, err := s.Create(ctx, services.CreateRequest{Key: pod("after"), Content: large("after", 0)})
		return err
	})
	if err := server.Full(); err != nil {
		t.Errorf("the member still says %v", err)
	}
	if got, err := s.Get(t.Context(), services.GetRequest{Key: kept.Key}); err != nil || got.Revision != kept.Revision {
		t.Errorf("what was kept is read as %+v, %v", got, err)
	}
}

// TestHistoryDoesNotFillTheDatabase: an object that changes all the time does not fill the
// database permanently, even without compaction by age.
func TestHistoryDoesNotFillTheDatabase(t *testing.T) {
	t.Parallel()
	s := replica(t, smallEtcd(t).Client)
	o := create(t, s, "busy")
	for i := range 96 { // three times the quota
		again(t, func(ctx context.Context) (err error) {
			next, err := s.Update(ctx, services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: large("busy", i)})
			if err == nil {
				o = next
			}
			return err
		})
	}
	if got, err := s.Get(t.Context(), services.GetRequest{Key: o.Key}); err != nil || got.Revision != o.Revision {
		t.Errorf("read back: %d, %v, want %d", got.Revision, err, o.Revision)
	}
}

// TestTheQuotaOfAnEtcdCluster: etcd applies the write that reaches its quota, and returns
// an error. The store returns the correct outcome.
func TestTheQuotaOfAnEtcdCluster(t *testing.T) {
	t.Parallel()
	client := dial(t, serveEtcd(t, func(c *embed.Config) { c.QuotaBackendBytes, c.UnsafeNoFsync = 16<<20, true }))
	metrics := prometheus.NewRegistry()
	s := New(Config{Client: client, Log: discard, Metrics: metrics})
	await(t, s)
	var acknowledged, refused sync.Map
	var all sync.WaitGroup
	for writer := range 8 {
		all.Go(func() {
			for i := range 10 {
				name := fmt.Sprintf("large%d-%d", writer, i)
				err := sent(func() error {
					_, err := s.Create(t.Context(), services.CreateRequest{Key: pod(name), Content: large(name, i)})
					return err
				})
				switch {
				case err == nil:
					acknowledged.Store(name, true)
				case services.IsReason(err, services.ReasonInsufficientStorage):
					refused.Store(name, true)
				case services.IsReason(err, services.ReasonTimeout) && metric(t, metrics, "portico_store_etcd_losses_total") > 0:
					// On a busy machine etcd may not respond for seconds. While it is full, what became of a
					// write then cannot be determined.
				default:
					t.Errorf("creating %s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	there := map[string]bool{}
	for after := ""; ; {
		var page services.Page
		if err := sent(func() (err error) {
			page, err = s.List(t.Context(), services.ListRequest{GroupResource: pod("").GroupResource, After: after})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			there[o.Key.Name] = true
		}
		if after = page.Next; after == "" {
			break
		}
	}
	count := 0
	refused.Range(func(name, _ any) bool {
		count++
		if there[name.(string)] {
			t.Errorf("%s was refused, and is there", name)
		}
		return true
	})
	acknowledged.Range(func(name, _ any) bool {
		if !there[name.(string)] {
			t.Errorf("%s was acknowledged, and is not there", name)
		}
		if err := sent(func() error {
			_, err := s.Delete(t.Context(), services.DeleteRequest{Key: pod(name.(string))})
			return err
		}); err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
		return true
	})
	if count == 0 {
		t.Error("nothing was refused: the test shows nothing")
	}
	a := &alarms{client: client, log: discard}
	a.poll(t.Context())
	if err := a.probe(t.Context()); err == nil || !strings.Contains(err.Error(), "NOSPACE") {
		t.Errorf("the check of the alarms says %v", err)
	}
}
