package feed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

// TestALaggardHoldsLittle: what a watcher gets from history at once is small until its client keeps up, and
// its encoded events are not kept.
func TestALaggardHoldsLittle(t *testing.T) {
	hub := &history{}
	const n, size = 400, 16 << 10
	for i := int64(1); i <= n; i++ {
		c := change(i, "a", "x")
		c.Object.JSON = make([]byte, size)
		hub.changes = append(hub.changes, c)
	}
	w := started(hub, n, 1).watcher(Selection{})
	w.signal(1)
	var got []int64
	for len(got) < n {
		w.pages.at = time.Now().Add(-2 * slow) // the client is slow
		if len(got) == 0 {
			w.pages.at = time.Time{}
		}
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if held := len(events) * size; held > 2*leastPage && len(got) > 0 || held > batchBytes+size {
			t.Fatalf("a slow watcher holds %d bytes of %d changes", held, len(events))
		}
		for _, e := range events {
			got = append(got, e.Entry.Object.Revision)
			if _, err := e.Entry.Encoded("form", func() ([]byte, error) { return make([]byte, size), nil }); err != nil || len(e.Entry.encoded) != 0 {
				t.Fatalf("the encoded event is kept: %v", err)
			}
		}
	}
	if !slices.IsSorted(got) || len(got) != n {
		t.Errorf("got %d events: %v", len(got), got)
	}
}

func TestPagesGrowWithTheClient(t *testing.T) {
	page := func(p *pages, now time.Time, each, selected int) int {
		limit := p.limit(now)
		changes := make([]services.Change, limit)
		for i := range changes {
			changes[i].Object.JSON = make([]byte, each)
		}
		p.took(now, changes, limit*each*selected/100)
		return limit * each
	}
	now := time.Now()
	for _, c := range []struct {
		pause          time.Duration
		selected, want int // percent, bytes of the last page
	}{{slow / 2, 100, mostPage}, {2 * slow, 100, leastPage}, {slow / 2, 0, mostSkipped}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			p, got := pages{}, 0
			for range 10 {
				now = now.Add(c.pause)
				got = page(&p, now, 4<<10, c.selected)
			}
			if got > c.want || got < c.want/2 {
				t.Errorf("the pages have %d bytes, want %d", got, c.want)
			}
		})
	}
	var p pages
	var last time.Duration
	for i := range 10 {
		if last = p.pause(); i == 0 && last != leastLag {
			t.Errorf("the first pause takes %v", last)
		}
	}
	if last != mostLag {
		t.Errorf("the pauses grow to %v", last)
	}
}
