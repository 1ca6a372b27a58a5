// Package growth is for tests of how the cost of a function grows with its input: it
// tells a quadratic function from a linear one by processor time, on a machine that may
// be busy with something else.
package growth

import (
	"runtime"
	"syscall"
	"time"
)

const (
	// tolerated is by how much the cost may grow when the input doubles: a linear one
	// grows twofold, a quadratic one fourfold. Sorting, caches that become too small and
	// busy machines account for the rest. A suspicion is confirmed by growth beyond
	// confirmed at several larger sizes.
	tolerated, confirmed = 2.6, 3.0
	// negligible is too little to measure: more items are tried.
	negligible = 8 * time.Millisecond
	// enough is too much to try larger sizes.
	enough = time.Second
)

// Sizes are what is tried: From and twice as much and, while the cost of that is
// negligible, more, up to Most and twice as much.
type Sizes struct{ From, Most int }

// Superlinear reports whether the cost of a function grows faster than its input, and
// the last ratio of costs that was measured. prepare returns the function for an input of
// a size, and its own cost does not count. A suspicion is looked at again with more items
// and more runs. The function must not start goroutines that do the work.
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

// Cost returns the processor time of a function: the least of several runs.
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
