package reads

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestPauseFor(t *testing.T) {
	for _, c := range []struct {
		watches int64
		cost    time.Duration
		cores   int
		want    time.Duration
	}{
		{0, firstCost, 2, 0},
		{10, firstCost, 2, 233 * time.Microsecond},
		{1000, firstCost, 2, 23333 * time.Microsecond},
		{1000, firstCost / 2, 2, 11666 * time.Microsecond}, // a faster machine
		{1000, firstCost, 4, 11666 * time.Microsecond},     // a larger one
		{100_000, firstCost, 2, longestPace},
	} {
		if got := pauseFor(c.watches, c.cost, c.cores); got.Truncate(time.Microsecond) != c.want {
			t.Errorf("%d watches, %s each, %d cores: got %s, want %s", c.watches, c.cost, c.cores, got, c.want)
		}
	}
}

// TestCostEstimate: the estimate converges to the cost of a flush although most flushes
// wait, and does not grow without bound if clients are slow.
func TestCostEstimate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // deterministic
	for _, cost := range []time.Duration{3 * time.Microsecond, 14 * time.Microsecond, 90 * time.Microsecond} {
		var e costEstimate
		if e.get() != firstCost {
			t.Errorf("starts with %s, want %s", e.get(), firstCost)
		}
		for range 5000 {
			took := cost + time.Duration(random.Int64N(int64(cost)/10))
			if random.IntN(5) < 3 {
				took += time.Duration(random.Int64N(int64(time.Second)))
			}
			e.add(took)
		}
		if got := e.get(); got < cost*9/10 || got > cost*3/2 {
			t.Errorf("flushes cost %s, the estimate is %s", cost, got)
		}
	}
	var e costEstimate
	for range 5000 {
		e.add(time.Hour)
	}
	if e.get() != mostCost {
		t.Errorf("flushes that take an hour make the estimate %s, want %s", e.get(), mostCost)
	}
	for range 5000 {
		e.add(0)
	}
	if e.get() != leastCost {
		t.Errorf("flushes that take no time make the estimate %s, want %s", e.get(), leastCost)
	}
}

// TestPaceEnds: all pauses end at the same time, and at once if their context ends.
func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{})
		start := time.Now()
		h.pace(t.Context())
		if time.Since(start) != 0 {
			t.Errorf("without watches there is a pause of %s", time.Since(start))
		}
		h.open.Store(1_000_000)
		h.pace(t.Context())
		if now := time.Now(); !now.Equal(now.Truncate(longestPace)) {
			t.Errorf("woken %s after the common moment", now.Sub(now.Truncate(longestPace)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		h.pace(ctx)
		if time.Since(start) != 0 {
			t.Error("a watch that has ended waits")
		}
	})
}
