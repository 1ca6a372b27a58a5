package inflight

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/portico-platform/portico/services"
)

// TestWatches: each user has a share, ordinary users together twice as much, and each a little in any case.
func TestWatches(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := NewWatches(200)
	w.Register(registry)
	refused := 0
	open := func(who Requester, times, want int) {
		t.Helper()
		n := 0
		for range times {
			if err := w.Open(who); err == nil {
				n++
			} else if s := services.AsStatus(err); s.Code != 429 || s.Details == nil || s.Details.RetryAfterSeconds != 1 {
				t.Fatalf("%s: %v", who.Name, err)
			}
		}
		refused += times - n
		if n != want {
			t.Errorf("%s opened %d, want %d", who.Name, n, want)
		}
	}
	jane, bob, eve, late := Requester{Name: "jane"}, Requester{Name: "bob"}, Requester{Name: "eve"}, Requester{Name: "late"}
	worker, root := Requester{Name: "system:portico:lifecycle", Class: System}, Requester{Name: "root", Class: Exempt}
	open(jane, 300, 200)
	w.Close(jane)
	open(jane, 2, 1)
	open(bob, 150, 150)
	open(eve, 60, 50) // the total
	open(late, 5, 2)  // a hundredth of the share
	open(worker, 300, 200)
	open(root, 500, 500)
	w.Close(bob)
	open(late, 2, 0) // there are still more than the total
	for range 3 {
		w.Close(bob)
	}
	open(late, 2, 2)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP portico_watches_per_user_limit Open watches that one user may have.
# TYPE portico_watches_per_user_limit gauge
portico_watches_per_user_limit 200
# HELP portico_watches_per_user_max Open watches of the user who has most.
# TYPE portico_watches_per_user_max gauge
portico_watches_per_user_max 500
`), "portico_watches_per_user_limit", "portico_watches_per_user_max"); err != nil {
		t.Error(err)
	}
	if got := w.refused.Load(); int(got) != refused {
		t.Errorf("%d are counted as refused, want %d", got, refused)
	}
	for who, n := range map[Requester]int{jane: 200, bob: 146, eve: 50, late: 4, worker: 200, root: 500} {
		for range n {
			w.Close(who)
		}
	}
	if len(w.users) != 0 || w.ordinary != 0 {
		t.Errorf("left: %v, %d", w.users, w.ordinary)
	}
}

// TestWatchShare: a controller has more than 10,000 watches wherever it runs, and more where there is more memory.
func TestWatchShare(t *testing.T) {
	for memory, want := range map[int64]int{0: 16384, 1 << 30: 16384, 8 << 30: 65536} {
		if got := WatchShare(memory); got != want {
			t.Errorf("with %d bytes: %d, want %d", memory, got, want)
		}
	}
}
