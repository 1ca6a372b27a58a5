package store

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
)

// server is an etcd at a fixed address whose data can be replaced.
type server struct {
	t       testing.TB
	address string
	token   string // determines the cluster id of new data
	etcd    *embed.Etcd
}

// start starts etcd with the data in dir.
func (s *server) start(dir string) {
	s.t.Helper()
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.Logger, c.LogOutputs = dir, "panic", "zap", []string{"/dev/null"}
	listen := url.URL{Scheme: "http", Host: s.address}
	c.ListenPeerUrls, c.ListenClientUrls, c.AdvertiseClientUrls = nil, []url.URL{listen}, []url.URL{listen}
	c.TickMs, c.ElectionMs = 10, 100
	c.InitialClusterToken, c.UnsafeNoFsync = s.token, true
	var err error
	if s.etcd, err = embed.StartEtcd(c); err != nil {
		s.t.Fatal(err)
	}
	<-s.etcd.Server.ReadyNotify()
	s.address = s.etcd.Clients[0].Addr().String()
}

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestRestoredEtcdIsDetected restarts etcd with older data, or as another cluster with
// that data, while the store runs.
func TestRestoredEtcdIsDetected(t *testing.T) {
	t.Run("same cluster", func(t *testing.T) {
		t.Parallel()
		restored(t, func(s *server, backup string) { s.start(backup) })
	})
	t.Run("another cluster", func(t *testing.T) {
		t.Parallel()
		restored(t, func(s *server, backup string) {
			s.start(backup)
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.address}, Logger: zap.NewNop()})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			all, err := client.Get(t.Context(), "/portico/", clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			s.etcd.Close()
			s.token = "another"
			s.start(t.TempDir())
			for _, kv := range all.Kvs {
				if _, err := client.Put(t.Context(), string(kv.Key), string(kv.Value)); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}

func restored(t *testing.T, restore func(s *server, backup string)) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &server{t: t, address: "127.0.0.1:0", token: "one"}
	data := t.TempDir()
	s.start(data)
	defer func() { s.etcd.Close() }()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.address}, Logger: zap.NewNop(), DialOptions: etcd.DialOptions()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var log lines
	store := New(Config{Client: client, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: prometheus.NewRegistry()})
	running := make(chan error, 1)
	following, stop := context.WithCancel(ctx)
	go func() { running <- store.Run(following) }()
	defer func() { stop(); <-running }()
	<-store.Ready()

	kept := create(t, store, "kept")
	s.etcd.Close()
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	s.start(data)
	awaitThere(t, store)
	changed := update(t, store, kept, "changed later")
	var ghost services.Object
	for i := range 60 {
		ghost = create(t, store, fmt.Sprintf("ghost%d", i))
	}
	s.etcd.Close()
	restore(s, backup)

	// It is detected without any request.
	for !strings.Contains(log.String(), "history of etcd is broken") {
		select {
		case <-ctx.Done():
			t.Fatalf("not noticed:\n%s", log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	awaitThere(t, store)
	if _, err := store.Revision(ctx, pod("").GroupResource); err != nil { // the new epoch has begun
		t.Fatal(err)
	}
	for _, mode := range []services.ReadMode{services.MostRecent, services.AnyRevision, services.NotOlderThan} {
		read := services.Read{Mode: mode, Revision: ghost.Revision}
		if o, err := store.Get(ctx, services.GetRequest{Key: pod("ghost1"), Read: read}); !services.IsReason(err, services.ReasonNotFound) {
			t.Errorf("mode %d shows what the restore undid: %+v, %v", mode, o, err)
		}
		if o, err := store.Get(ctx, services.GetRequest{Key: pod("kept"), Read: read}); err != nil || o.UID != kept.UID {
			t.Errorf("mode %d: %+v, %v", mode, o, err)
		}
	}
	if _, err := store.List(ctx, services.ListRequest{GroupResource: kept.Key.GroupResource, Read: exactly(ghost.Revision)}); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("a list at a revision of the lost history: %v, want Expired", err)
	}
	created := create(t, store, "new")
	if created.Revision <= ghost.Revision {
		t.Errorf("a revision was given twice: %d after %d", created.Revision, ghost.Revision)
	}
	if o, err := store.Get(ctx, services.GetRequest{Key: pod("new")}); err != nil || o.Revision != created.Revision {
		t.Errorf("a write after the restore is read as %+v, %v", o, err)
	}
	if _, err := store.Update(ctx, services.UpdateRequest{Key: pod("kept"), Revision: changed.Revision, Content: content("kept", "x")}); !services.IsReason(err, services.ReasonConflict) {
		t.Errorf("an update of the lost state: %v, want a conflict", err)
	}
	now, err := store.Get(ctx, services.GetRequest{Key: pod("kept")})
	if err != nil {
		t.Fatal(err)
	}
	update(t, store, now, "written after the restore")
	if err := store.main.following(ctx); err != nil {
		t.Errorf("not ready in the end: %v", err)
	}
	if !strings.Contains(log.String(), "a new epoch of the store has begun") {
		t.Errorf("the new epoch is not logged:\n%s", log.String())
	}
}
