package reads

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestPauses flushes a number of watches every ten milliseconds, for a second, and
// expects the share of the CPU that all flushes use, and the longest pause.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		what    string
		watches int
		cost    time.Duration
		cores   int
		paced   bool
		longest time.Duration
	}{
		{"a few watches", 10, firstCost, 2, false, 0},
		{"many watches on a large machine", 1000, firstCost, 8, false, leastPace * 5},
		{"many watches", 1000, firstCost, 2, true, 30 * time.Millisecond},
		{"many watches on a faster machine", 1000, firstCost / 2, 2, true, 15 * time.Millisecond},
		{"too many watches", 10_000, firstCost, 2, true, longestPace},
	} {
		synctest.Test(t, func(t *testing.T) {
			var p pacer
			flushes, longest := 0, time.Duration(0)
			start := time.Now()
			for time.Since(start) < time.Second {
				var end <-chan struct{}
				for range c.watches {
					flushes++
					end = p.spend(time.Now(), c.cost, c.cores)
				}
				before := time.Now()
				if end != nil {
					<-end
				}
				longest = max(longest, time.Since(before))
				if rest := 10*time.Millisecond - time.Since(before); rest > 0 {
					<-time.After(rest) // until the next change
				}
			}
			used := float64(flushes) * float64(c.cost) / float64(time.Second) / float64(c.cores)
			if used > 2*flushShare && c.longest < longestPace {
				t.Errorf("%s: flushes use %.2f of the CPU", c.what, used)
			}
			if longest > c.longest || c.paced && longest < leastPace {
				t.Errorf("%s: a pause of %s, want at most %s", c.what, longest, c.longest)
			}
		})
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

// TestPauseEnds: all pauses end at the same time, and at once if their context ends.
func TestPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		start := time.Now()
		p.pause(t.Context())
		if time.Since(start) != 0 {
			t.Errorf("a single flush is followed by a pause of %s", time.Since(start))
		}
		for range 2000 {
			p.spend(time.Now(), firstCost, 2)
		}
		ends := make(chan time.Time)
		for i := range 3 {
			time.AfterFunc(time.Duration(i)*100*time.Microsecond, func() {
				p.pause(t.Context())
				ends <- time.Now()
			})
		}
		first := <-ends
		if second, third := <-ends, <-ends; !first.Equal(second) || !first.Equal(third) || first.Equal(start) {
			t.Errorf("pauses end at %s, %s and %s", first, second, third)
		}
		for range 10_000 {
			p.spend(time.Now(), firstCost, 2)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		p.pause(ctx)
		if time.Since(start) != 0 {
			t.Error("a watch that has ended waits")
		}
		<-p.spend(time.Now(), firstCost, 2)
		<-time.After(time.Second)
		if end := p.spend(time.Now(), firstCost, 2); end != nil {
			t.Errorf("after a second without flushes a flush is followed by a pause")
		}
	})
}
