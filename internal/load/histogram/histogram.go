// Package histogram counts durations in constant memory and returns their quantiles, for runs that are
// too long to keep every duration.
package histogram

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Values of 2^subBits and more are counted in 2^(subBits-1) buckets for each power of two, so that a
// quantile differs by 1.6% at most from the exact one.
const (
	subBits = 6
	buckets = (64 - subBits + 1) << subBits
)

// Histogram counts durations. Its methods may be called concurrently. The zero value is empty.
type Histogram struct {
	counts [buckets]atomic.Int64
	most   atomic.Int64
}

// Record counts a duration; a negative one as 0.
func (h *Histogram) Record(d time.Duration) {
	n := max(d, 0)
	shift := max(bits.Len64(uint64(n))-subBits, 0)
	h.counts[shift<<subBits+int(n>>shift)].Add(1)
	for most := h.most.Load(); int64(n) > most && !h.most.CompareAndSwap(most, int64(n)); most = h.most.Load() {
		continue
	}
}

// Max returns the longest duration.
func (h *Histogram) Max() time.Duration { return time.Duration(h.most.Load()) }

// Quantile returns the duration below which a part q of all is, and 0 of an empty histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	var all, below int64
	for i := range h.counts {
		all += h.counts[i].Load()
	}
	rank := int64(q * float64(all-1))
	for i := range h.counts {
		if below += h.counts[i].Load(); below > rank {
			shift, value := i>>subBits, int64(i&(1<<subBits-1))
			return min(time.Duration(value<<shift+(1<<shift)/2), h.Max())
		}
	}
	return h.Max()
}
