package watchhub

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// TestNothingFollowsAnEndedEpoch: what is written after the end of an epoch never counts as a part of it, although the hub
// has not read the epoch since. A late write that raised the revision, after the new epoch began, ends nothing.
func TestNothingFollowsAnEndedEpoch(t *testing.T) {
	bus := testbed.StartNATS(t)
	f, _ := leading(t, bus, bus.Connect())
	of, now, err := f.keeper.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.window.Reset(now, of)
	responses := f.reader.Follow(t.Context(), now, time.Hour)
	takeUntil := func(revision int64) error {
		for {
			if err := f.takeAll(t.Context(), responses, <-responses, true); err != nil || f.window.Progress().Through >= revision {
				return err
			}
		}
	}
	put := func(key, value string) int64 {
		answer, err := f.etcd.Put(t.Context(), key, value)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Revision
	}
	put(epoch.Key+"-raise", "")
	before := put(pod("before").Path(), string(testbed.Record(pod("before"), "value")))
	if err := takeUntil(before); err != nil || f.window.Epoch() != of {
		t.Fatalf("a late write that raised the revision ends the epoch: %v", err)
	}
	pending, err := json.Marshal(epoch.Epoch{ID: "pending", Cluster: of.Cluster, Pending: true, Target: before + 50})
	if err != nil {
		t.Fatal(err)
	}
	put(epoch.Key, string(pending))
	after := put(pod("after").Path(), string(testbed.Record(pod("after"), "value")))
	if err := takeUntil(after); !errors.Is(err, errNewEpoch) {
		t.Errorf("got %v, want that the epoch has ended", err)
	}
	if through := f.window.Progress().Through; through > before {
		t.Errorf("the ended epoch includes revision %d after %d", through, before)
	}
	if next, revision, err := f.keeper.Read(t.Context()); err != nil || next == of || revision <= before+50 {
		t.Errorf("the next epoch is %+v at %d (%v)", next, revision, err)
	}
}
