package reads

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// flushShare is the fraction of the CPU that all watches together may spend on
	// flushing their connections.
	flushShare  = 0.3
	longestPace = 50 * time.Millisecond
)

// pace pauses between two flushes of a watch, so that changes are batched and all watches
// together stay within flushShare: there is no pause for a few watches, and about ten
// milliseconds for a thousand. All pauses end at the same times, so that frames of watches
// that share a connection are sent together.
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

// pauseFor returns the pause with which the flushes of this number of watches use
// flushShare of the cores.
func pauseFor(watches int64, cost time.Duration, cores int) time.Duration {
	return min(time.Duration(float64(watches)*float64(cost)/(flushShare*float64(cores))), longestPace)
}

const (
	// firstCost is the estimate before the first measurement. leastCost and mostCost are
	// its bounds, since measurements may be wrong, for example on a suspended machine.
	firstCost = 14 * time.Microsecond
	leastCost = time.Microsecond
	mostCost  = 200 * time.Microsecond
	// costQuantile is the quantile of measured flushes that is the estimate. Slower
	// flushes include time spent waiting: for a core, for a connection that other watches
	// share, or for a slow client. Waiting uses no CPU.
	costQuantile = 0.25
	// costStep bounds the relative change by one measurement: it takes more than a
	// hundred of them to double the estimate.
	costStep = 0.02
)

// costEstimate estimates the cost of a flush on this machine. The zero value is firstCost.
// Concurrent measurements may be lost, which is harmless.
type costEstimate struct{ bits atomic.Uint64 }

func (e *costEstimate) get() time.Duration {
	if bits := e.bits.Load(); bits != 0 {
		return time.Duration(math.Float64frombits(bits))
	}
	return firstCost
}

// add adds a measurement. The estimate moves in small steps, so that a single measurement
// has little effect, towards the value that costQuantile of all measurements are below.
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
