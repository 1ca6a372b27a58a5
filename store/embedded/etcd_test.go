package embedded

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func open(t *testing.T, dir string, log *slog.Logger) *Server {
	t.Helper()
	s, err := Open(t.Context(), Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsWrittenIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelInfo}))
	for run := range 2 {
		s := open(t, dir, log)
		if run == 0 {
			if _, err := s.Client.Put(t.Context(), "k", "v"); err != nil {
				t.Fatal(err)
			}
		} else {
			got, err := s.Client.Get(t.Context(), "k")
			if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
				t.Errorf("after the restart: %v, %v", got, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("etcd is not quiet:\n%s", &logged)
	}
}

// TestMetricsOfEtcd: etcd has the metrics that the alert PorticoEtcdFillingUp compares.
func TestMetricsOfEtcd(t *testing.T) {
	s := open(t, t.TempDir(), slog.New(slog.DiscardHandler))
	defer s.Close()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		found[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
	}
	if size, quota := found["etcd_mvcc_db_total_size_in_bytes"], found["etcd_server_quota_backend_bytes"]; size <= 0 || quota < size {
		t.Errorf("a database of %v bytes with the quota %v", size, quota)
	}
}

func TestADirectoryHasOneUser(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	s := open(t, dir, log)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := Open(ctx, Config{Dir: dir, Log: log})
	if err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second opening: %v", err)
	}
}

// TestRequestsDoNotStayInMemory overwrites one key many times: raft entries, which contain
// whole requests, are not kept in memory for followers that do not exist. The newest ones
// and what is not committed to disk yet are: the more, the faster the disk is.
func TestRequestsDoNotStayInMemory(t *testing.T) {
	const size, writes, most = 256 << 10, 1000, 128 << 20
	s := open(t, t.TempDir(), slog.New(slog.DiscardHandler))
	defer s.Close()
	before, value := heap(), strings.Repeat("x", size)
	for range writes {
		if _, err := s.Client.Put(t.Context(), "k", value); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d MiB stay in memory after %d MiB of writes, want at most %d", grown>>20, size*writes>>20, most>>20)
	}
}

// heap returns the size of all live objects in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // also frees the victim caches of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
