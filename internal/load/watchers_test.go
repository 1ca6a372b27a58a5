package load

import (
	"slices"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/load/events"
)

// TestLast: of each change that all watchers have received, the latest counts.
func TestLast(t *testing.T) {
	received := func(latencies ...time.Duration) *Watcher {
		return &Watcher{Reader: events.Reader{Count: len(latencies), Bytes: 10, Latencies: latencies}}
	}
	all, resumed := Last([]*WatchGroup{{Resumed: 2, Watchers: []*Watcher{received(1, 5, 2), received(3, 4, 1)}}, {Watchers: []*Watcher{received(2, 2)}}})
	if !slices.Equal(all.Latencies, []time.Duration{3, 5}) || all.Operations != 8 || all.Bytes != 30 || resumed != 2 {
		t.Errorf("got %+v, %d resumed", all, resumed)
	}
}
