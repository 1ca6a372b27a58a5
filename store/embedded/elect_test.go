package embedded

import (
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// TestTheStartDoesNotWaitForAnElectionTimeout starts a member whose first tick is after
// the end of the test.
func TestTheStartDoesNotWaitForAnElectionTimeout(t *testing.T) {
	c := config(t.TempDir(), Config{QuotaBytes: defaultQuota, Log: slog.New(slog.DiscardHandler)})
	c.TickMs, c.ElectionMs = 10_000, 50_000
	member, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	elect(t.Context(), member.Server)
	select {
	case <-member.Server.ReadyNotify():
	case <-time.After(time.Duration(c.TickMs) * time.Millisecond):
		t.Error("the member is not ready before its first tick")
	}
}
