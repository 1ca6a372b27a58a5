// Package growth tests how the cost of a function grows with its input: it distinguishes
// quadratic functions from linear ones by processor time, also on a busy machine.
package growth

import (
	"runtime"
	"syscall"
	"time"
)

const (
	// tolerated is the factor by which the cost may grow when the input doubles: a linear
	// one doubles, a quadratic one quadruples. Sorting, exceeded CPU caches and other load
	// account for the rest. A larger growth is confirmed by factors above confirmed at
	// larger sizes.
	tolerated, confirmed = 2.6, 3.0
	// negligible is too short to measure; larger sizes are tried.
	negligible = 8 * time.Millisecond
	// enough is too long to try larger sizes.
	enough = time.Second
)

// Sizes bound the sizes that are tried: From and 2*From and, while the cost is negligible,
// larger ones, up to Most and 2*Most.
type Sizes struct{ From, Most int }

// Superlinear reports whether the cost of a function grows faster than its input, and
// returns the last measured ratio of costs. prepare returns the function for an input of a
// size; its own cost does not count. A suspicious ratio is measured again with larger inputs
// and more runs. The function must do its work in the calling goroutine.
func Superlinear(sizes Sizes, prepare func(n int) func()) (ratio float64, superlinear bool) {
	limit, n := tolerated, sizes.From
	for runs := 1; runs <= 5; runs++ {
		twice := Cost(runs, prepare(2*n))
		if twice < negligible {
			if n >= sizes.Most {
				return 0, false
			}
			runs, n = 0, n*2
			continue
		}
		ratio = float64(twice) / float64(max(Cost(runs, prepare(n)), time.Microsecond))
		if ratio <= limit {
			return ratio, false
		}
		if twice > enough {
			break
		}
		limit, n = confirmed, n*2
	}
	return ratio, true
}

// Cost returns the processor time of a function: the minimum of several runs.
func Cost(runs int, f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thread = 1 // RUSAGE_THREAD
	least := time.Hour
	for range runs {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(thread, &before)
		f()
		_ = syscall.Getrusage(thread, &after)
		took := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
		least = min(least, took)
	}
	return least
}
