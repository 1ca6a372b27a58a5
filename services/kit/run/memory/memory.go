// Package memory bounds the caches of a process by one budget, and returns memory to the
// system when the process is idle, if that is worth a garbage collection.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// checkInterval is the interval of checks.
	checkInterval = 5 * time.Second
	// soon is the time within which memory that will be reused is kept.
	soon = time.Minute
	// worthwhile is the minimum that is released, in bytes.
	worthwhile = 32 << 20
)

// memory holds the runtime's metrics of the heap, in bytes.
type memory struct {
	held      uint64 // from the system
	live      uint64 // at the last collection
	allocated uint64 // since the process started
}

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return memory{held: value(0) + value(1) + value(2), live: value(3), allocated: value(4)}
}

// housekeeper bounds the caches, and releases memory to the system when the process is idle. The runtime keeps
// the memory that it needs until the next collection, about as much as is live: useful
// under load, and wasted if nothing is allocated for minutes.
type housekeeper struct {
	budget   *Budget
	release  bool // memory to the system
	read     func() memory
	giveBack func() // collects garbage, and returns all free memory
	last     memory
	// fragmented is the free memory that could not be released the last time.
	fragmented uint64
}

// run checks at every checkInterval until ctx ends.
func (h *housekeeper) run(ctx context.Context) {
	h.last = h.read()
	ticks := time.NewTicker(checkInterval)
	defer ticks.Stop()
	delayed := delayCollections(h.budget.headroom())
	defer delayed.end()
	for {
		select {
		case <-ticks.C:
			h.budget.enforce()
			delayed.headroom.Store(h.budget.headroom())
			if h.release {
				h.check()
			}
		case <-ctx.Done():
			return
		}
	}
}

// check releases memory if much of it will not be used soon, judging by the allocations
// since the last check.
func (h *housekeeper) check() {
	now := h.read()
	needed := (now.allocated - h.last.allocated) * uint64(soon/checkInterval)
	if now.held > now.live+needed+h.fragmented+worthwhile {
		h.giveBack()
		now = h.read()
		h.fragmented = now.held - min(now.live, now.held)
	}
	h.last = now
}

// Tidy bounds the caches of the process, delays garbage collections while little memory is
// live, and, if release is set, releases unused memory, until ctx ends.
func Tidy(ctx context.Context, budget *Budget, release bool) {
	h := newHousekeeper()
	h.budget, h.release = budget, release
	h.run(ctx)
}

func newHousekeeper() *housekeeper {
	return &housekeeper{read: readMemory, giveBack: debug.FreeOSMemory}
}
