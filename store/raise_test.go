package store

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
)

var raises = flag.Int("raises", 1, "rounds of TestNothingOldIsServedDuringARaise, each of which takes 15 s")

// slowRaise lets so many writes that raise the revision pass, and holds the others.
type slowRaise struct {
	clientv3.KV
	passed, limit int64
	held          chan struct{} // closed when one is held
	release       chan struct{}
	once          atomic.Bool
}

// Put implements clientv3.KV.
func (s *slowRaise) Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if key == "/portico/epoch-raise" && atomic.AddInt64(&s.passed, 1) > s.limit {
		if s.once.CompareAndSwap(false, true) {
			close(s.held)
		}
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.KV.Put(ctx, key, value, options...)
}

// frozen holds all reads of etcd while it is frozen, like a process that is stopped.
type frozen struct {
	clientv3.KV
	until atomic.Pointer[chan struct{}]
}

// Get implements clientv3.KV.
func (f *frozen) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if until := f.until.Load(); until != nil {
		select {
		case <-*until:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return f.KV.Get(ctx, key, options...)
}

// TestNothingOldIsServedDuringARaise: one store raises the revision of a restored etcd, slowly, while another one was frozen
// during the restore and wakes when the revision has passed all that it had seen. It never serves what the restore
// undid, and neither does the first one.
func TestNothingOldIsServedDuringARaise(t *testing.T) {
	t.Parallel()
	for round := range *raises {
		t.Run(fmt.Sprint(round), raisedSlowly)
	}
}

func raisedSlowly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &server{t: t, address: "127.0.0.1:0", token: "one"}
	data := t.TempDir()
	s.start(data)
	defer func() { s.etcd.Close() }()
	slow := &slowRaise{limit: 1_000, held: make(chan struct{}), release: make(chan struct{})}
	var still frozen
	stores := [2]*Store{}
	var cut *cutWatch
	for i := range stores {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.address}, Logger: zap.NewNop(), DialOptions: etcd.DialOptions()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if i == 0 {
			slow.KV = client.KV
			client.KV = slow
		} else {
			still.KV = client.KV
			cut = newCutWatch(client.Watcher)
			client.KV, client.Watcher = &still, cut
		}
		stores[i] = New(Config{Client: client, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
		running := make(chan error, 1)
		following, stop := context.WithCancel(ctx)
		go func() { running <- stores[i].Run(following) }()
		defer func() { stop(); <-running }()
		<-stores[i].Ready()
	}
	create(t, stores[0], "kept")
	s.etcd.Close()
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	s.start(data)
	awaitThere(t, stores[0])
	awaitThere(t, stores[1])
	var ghost services.Object
	for i := range 60 {
		ghost = create(t, stores[0], fmt.Sprintf("ghost%d", i))
	}
	if _, err := get(t, stores[1], ghost.Key); err != nil {
		t.Fatal(err)
	}
	wake := make(chan struct{})
	still.until.Store(&wake)
	cut.off()
	s.etcd.Close()
	s.start(backup)
	select {
	case <-slow.held:
	case <-ctx.Done():
		t.Fatal("nothing is raised")
	}
	close(wake)
	cut.on()
	undone := func(s *Store) error {
		bounded, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err := s.Get(bounded, services.GetRequest{Key: ghost.Key})
		if err == nil {
			t.Fatal("what the restore undid is served")
		}
		return err
	}
	for began := time.Now(); time.Since(began) < 2*time.Second; { // the other one raises on its own
		_, _ = undone(stores[0]), undone(stores[1])
	}
	close(slow.release)
	for _, s := range stores {
		for !services.IsReason(undone(s), services.ReasonNotFound) && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		awaitThere(t, s)
	}
}
