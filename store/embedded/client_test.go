package embedded

import (
	"log/slog"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestCloseWaitsForWatches: a watch that still reads previous values when the member is closed
// does not end the process.
func TestCloseWaitsForWatches(t *testing.T) {
	for range 8 {
		s, err := Open(t.Context(), Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			if _, err := s.Client.Put(t.Context(), "a", "value"); err != nil {
				t.Fatal(err)
			}
		}
		var last clientv3.WatchChan
		for range 100 {
			last = s.Client.Watch(t.Context(), "a", clientv3.WithPrevKV(), clientv3.WithRev(1))
		}
		<-last
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
