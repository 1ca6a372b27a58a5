package reads

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// flushShare is the part of the machine's cores that all watchers together may spend
	// on handing pieces of watches to their connections.
	flushShare  = 0.3
	longestPace = 50 * time.Millisecond
)

// pace lets changes gather between two flushes of a watch, so that all watchers
// together cost what flushShare allows: nothing for a few of them, some ten
// milliseconds for a thousand. They wake at the same moments, so that the frames
// of those that share a connection leave together.
func (h *Handlers) pace(ctx context.Context) {
	pause := pauseFor(h.open.Load(), h.flushCost.get(), runtime.GOMAXPROCS(0))
	if pause < time.Millisecond {
		return
	}
	now := time.Now()
	timer := time.NewTimer(now.Truncate(pause).Add(pause).Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pauseFor returns the pause after which flushes of so many watches cost their share.
func pauseFor(watches int64, cost time.Duration, cores int) time.Duration {
	return min(time.Duration(float64(watches)*float64(cost)/(flushShare*float64(cores))), longestPace)
}

const (
	// firstCost is the estimate before anything was measured, and leastCost and mostCost
	// are its bounds: what is measured may be nonsense, as on a machine that was paused.
	firstCost = 14 * time.Microsecond
	leastCost = time.Microsecond
	mostCost  = 200 * time.Microsecond
	// costQuantile is the part of all flushes that is to be cheaper than the estimate: a
	// flush that takes longer than most waited, for a core, a connection that other
	// watches share or a slow client, and waiting costs nothing.
	costQuantile = 0.25
	// costStep is how far one measurement moves the estimate; some hundred double it.
	costStep = 0.02
)

// costEstimate follows what a flush costs on this machine. The zero value is firstCost.
// Measurements of several watches at a time may be lost, which does no harm.
type costEstimate struct{ bits atomic.Uint64 }

func (e *costEstimate) get() time.Duration {
	if bits := e.bits.Load(); bits != 0 {
		return time.Duration(math.Float64frombits(bits))
	}
	return firstCost
}

// add takes one measurement into account. The estimate moves by steps, so that a single
// one cannot move it far; it rests where costQuantile of all are below.
func (e *costEstimate) add(took time.Duration) {
	estimate := float64(firstCost)
	if bits := e.bits.Load(); bits != 0 {
		estimate = math.Float64frombits(bits)
	}
	if float64(took) > estimate {
		estimate *= 1 + costStep*costQuantile
	} else {
		estimate *= 1 - costStep*(1-costQuantile)
	}
	e.bits.Store(math.Float64bits(min(max(estimate, float64(leastCost)), float64(mostCost))))
}
