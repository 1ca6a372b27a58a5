package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// headroomShare is the part of the budget that is allocated between two collections at least.
	headroomShare = 2
	// usualPercent is GOGC where nothing else is set, and mostPercent the most that is set here.
	usualPercent, mostPercent = 100, 1000
)

// headroom returns how many bytes may be allocated before a collection, however little is live.
func (b *Budget) headroom() int64 {
	if b == nil {
		return 0
	}
	left := b.bytes / headroomShare
	if total, free := b.limit(); total > 0 && free < total/scarce {
		left /= scarceShare
	}
	return left
}

// collections makes the garbage collector wait until as many bytes as the headroom have been
// allocated since its last cycle, if fewer are live.
type collections struct {
	headroom atomic.Int64
	over     atomic.Bool
}

// delayCollections returns collections with a headroom. A GOGC in the environment has
// precedence. The caller must call end.
func delayCollections(headroom int64) *collections {
	c := &collections{}
	c.headroom.Store(headroom)
	if os.Getenv("GOGC") == "" {
		runtime.SetFinalizer(&cycle{c}, (*cycle).finished)
	}
	return c
}

// end lets the collector run as usual.
func (c *collections) end() {
	c.headroom.Store(0)
	c.over.Store(true)
}

// cycle is found to be garbage in every cycle of the collector, and kept for the next one.
type cycle struct{ of *collections }

// finished sets the goal of the next cycle from what is live after this one: a percentage alone
// would let a heap that has grown since grow further by the same factor.
func (c *cycle) finished() {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(samples)
	live, before := int64(samples[0].Value.Uint64()), int64(samples[1].Value.Uint64())
	if next := percentOf(c.of.headroom.Load(), live); next < before || next > before+before/16 {
		debug.SetGCPercent(int(next)) // which stops the world for some microseconds
	}
	if !c.of.over.Load() {
		runtime.SetFinalizer(c, (*cycle).finished)
	}
}

// percentOf returns the percentage of live bytes that may be allocated before the next cycle.
func percentOf(headroom, live int64) int64 {
	return min(max(usualPercent, headroom*100/max(live, 1)), mostPercent)
}
