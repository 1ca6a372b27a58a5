package reads

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// flushShare is the fraction of the CPU that all watches together may spend on
	// flushing their connections.
	flushShare  = 0.3
	longestPace = 50 * time.Millisecond
	// leastPace is the shortest pause.
	leastPace = time.Millisecond
)

// pacer pauses watches after a flush, so that changes are batched when the flushes of all
// watches use more than flushShare of the CPU. It sums what they cost: a few watches, or
// many that are rarely flushed, never pause. All pauses end at the same time, with one
// timer, so that frames of watches that share a connection are sent together.
type pacer struct {
	cost costEstimate

	mu sync.Mutex
	// debt is the CPU time of flushes beyond the share, as of counted.
	debt    time.Duration
	counted time.Time
	end     chan struct{} // closed at the end of the current pause; nil if there is none
}

// pause waits for the end of the pause after a flush, if there is one, or for ctx.
func (p *pacer) pause(ctx context.Context) {
	end := p.spend(time.Now(), p.cost.get(), runtime.GOMAXPROCS(0))
	if end == nil {
		return
	}
	select {
	case <-end:
	case <-ctx.Done():
	}
}

// spend counts a flush. It returns the end of the pause that follows; nil for none.
func (p *pacer) spend(now time.Time, cost time.Duration, cores int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := flushShare * float64(cores)
	repaid := time.Duration(float64(now.Sub(p.counted)) * share)
	p.debt, p.counted = max(0, p.debt-repaid)+cost, now
	p.debt = min(p.debt, time.Duration(float64(longestPace)*share))
	if p.end != nil {
		return p.end
	}
	pause := time.Duration(float64(p.debt) / share)
	if pause < leastPace {
		return nil
	}
	end := make(chan struct{})
	p.end = end
	time.AfterFunc(pause, func() {
		p.mu.Lock()
		p.end = nil
		p.mu.Unlock()
		close(end)
	})
	return end
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
