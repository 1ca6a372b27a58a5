package histogram

import (
	"math"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 {
		t.Error("an empty histogram has quantiles")
	}
	const n = 10_000
	for i := range n {
		h.Record(time.Duration(n-i) * 7 * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0: 7 * time.Microsecond, 0.5: 35 * time.Millisecond, 0.99: 69300 * time.Microsecond, 1: 70 * time.Millisecond} {
		if got := h.Quantile(q); math.Abs(float64(got-want)) > 0.016*float64(want) {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if h.Max() != 70*time.Millisecond {
		t.Errorf("the maximum is %v", h.Max())
	}
	for _, d := range []time.Duration{-1, 0, 1, 63, 64, math.MaxInt64} { // each has a bucket
		var one Histogram
		one.Record(d)
		if got := one.Quantile(0.5); got > max(d, 0) || float64(got) < 0.98*float64(d) {
			t.Errorf("%d: %d", d, got)
		}
	}
}
