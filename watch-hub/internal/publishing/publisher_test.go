package publishing

import (
	"log/slog"
	"testing"
	"time"
)

// TestFewChangesAreNotHeldBack: changes that follow each other at once are published at once,
// unless there are many; then one publication per tick is left.
func TestFewChangesAreNotHeldBack(t *testing.T) {
	p := New(nil, nil, slog.New(slog.DiscardHandler))
	published := 0
	change := func(at time.Time) {
		p.open[pods] = &message{}
		if p.Ready(at) {
			p.Flush(at)
			published++
		}
	}
	now := time.Now()
	for range int(ahead / Tick) {
		change(now)
	}
	if want := int(ahead / Tick); published != want {
		t.Fatalf("%d of %d changes were published at once", published, want)
	}
	published = 0
	for i := range 1000 {
		change(now.Add(time.Duration(i) * Tick / 10))
	}
	if published < 90 || published > 101 {
		t.Errorf("%d publications in 100 ticks under load", published)
	}
	now = now.Add(time.Second)
	published = 0
	if change(now); published != 1 {
		t.Error("a change after a pause was not published at once")
	}
}
