package store

import (
	"encoding/json"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/resource"
)

// TestNothingFollowsAnEndedEpoch: what is written after the end of an epoch is never served as a part of it, although the
// store has not read the epoch since. A late write that raised the revision, after the new epoch began, ends nothing.
func TestNothingFollowsAnEndedEpoch(t *testing.T) {
	client := openEtcd(t)
	s := replica(t, client)
	put := func(key, value string) {
		t.Helper()
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	first := create(t, s, "first")
	was := s.main.mirror.Epoch()
	put(epoch.Key+"-raise", "")
	create(t, s, "second")
	if loads := s.main.mirror.Status().Loads; loads != 1 || s.main.mirror.Epoch() != was {
		t.Fatalf("a late write that raised the revision ends the epoch: %d loads", loads)
	}
	pending, err := json.Marshal(epoch.Epoch{ID: "pending", Cluster: was.Cluster, Pending: true, Target: first.Revision + 50})
	if err != nil {
		t.Fatal(err)
	}
	put(epoch.Key, string(pending))
	late := pod("late")
	put(late.Path(), string(resource.EncodeRecord(resource.Record{UID: "u", At: 13, JSON: []byte(`{"metadata":{"name":"late"}}`)})))
	for {
		page, err := s.List(t.Context(), services.ListRequest{GroupResource: late.GroupResource, Read: services.Read{Mode: services.AnyRevision}})
		if err != nil || len(page.Objects) < 3 {
			continue
		}
		if page.Epoch == was.ID {
			t.Error("the object is served as a part of the ended epoch")
		}
		return
	}
}
