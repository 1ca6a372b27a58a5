package fairness

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// adjustEvery is how often the seats are adjusted to the processors while many requests are served.
	adjustEvery = 100 * time.Millisecond
	// late is how long nine of ten goroutines may wait for a processor. Beyond it, more requests at a time
	// are not served sooner: each of the many steps of a request waits that long, also those of administrators
	// and of etcd in this process. Below soon, more are served at a time again.
	late, soon = 5 * time.Millisecond, 2 * time.Millisecond
	// shrink and grow are the factors of one adjustment.
	shrink, grow = 0.7, 1.2
	// perProcessor is how many seats a processor has at least: requests also wait for etcd, webhooks and clients.
	perProcessor = 16
	// restAfter is the number of adjustments without effect after which they stop until many requests are served again.
	restAfter = 20
	// waits is how long goroutines wait for a processor, in the metrics of the runtime.
	waits = "/sched/latencies:seconds"
)

// pressure gives requests a part of the seats while the processors are the bottleneck. Seats bound what waits for
// others; far fewer requests keep all processors busy, and the rest waits better in its fair queues.
type pressure struct {
	adjusting atomic.Bool
	wake      chan struct{}
	waited    func() time.Duration // how long nine of ten goroutines have waited for a processor at most, since the last call
	part      float64              // of the seats; Shares.mu is held
}

func newPressure() pressure {
	return pressure{wake: make(chan struct{}, 1), waited: newWaited(), part: 1}
}

// most returns the number of requests that are served at a time without an adjustment.
func most() int64 { return int64(perProcessor * runtime.GOMAXPROCS(0)) }

// crowded reports whether more requests are served than that. Few are, as a rule, and the number of processors takes
// a lock of the runtime, so it is not read for them.
func (s *Shares) crowded() bool {
	served := s.kinds[0].executing.Load() + s.kinds[1].executing.Load()
	return served > perProcessor && served > most()
}

// notice starts the adjustments if many requests are served.
func (s *Shares) notice() {
	if s.crowded() && s.pressure.adjusting.CompareAndSwap(false, true) {
		s.pressure.wake <- struct{}{}
	}
}

// adjust gives the levels more or fewer of their seats, and reports whether that is of use.
func (s *Shares) adjust() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := min(1, float64(most())/float64(s.seats()))
	part := s.pressure.part
	switch wait := s.pressure.waited(); {
	case wait > late:
		part *= shrink
	case wait < soon:
		part *= grow
	}
	part = min(max(part, least), 1)
	if part != s.pressure.part {
		s.pressure.part = part
		now := time.Now()
		for _, l := range s.levels {
			l.setPart(part, now)
		}
	}
	return part < 1 || s.crowded()
}

// scaled returns the seats that the level has at present. The caller holds mu.
func (l *level) scaled() int { return max(1, int(math.Ceil(float64(l.granted)*l.part))) }

// newWaited returns a function for pressure.waited.
func newWaited() func() time.Duration {
	sample := []metrics.Sample{{Name: waits}}
	var before []uint64
	return func() time.Duration {
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
			return 0 // this version of Go has no such metric
		}
		h := sample[0].Value.Float64Histogram()
		now := append([]uint64(nil), h.Counts...)
		var total uint64
		for i := range now {
			if before != nil {
				total += now[i] - before[i]
			}
		}
		wait := time.Duration(0)
		if total > 0 {
			left := total - total/10
			for i := range now {
				if n := now[i] - before[i]; n < left {
					left -= n
					continue
				}
				wait = time.Duration(math.Max(0, h.Buckets[i]) * float64(time.Second))
				break
			}
		}
		before = now
		return wait
	}
}
