package memory

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestHousekeeper(t *testing.T) {
	const mib = 1 << 20
	var now memory
	given := 0
	h := &housekeeper{read: func() memory { return now }, giveBack: func() {
		given++
		now.live, now.held = 100*mib, 110*mib // in small pieces
	}}
	for _, step := range []struct {
		what      string
		held      uint64
		allocated uint64 // since the step before
		want      int    // how often memory has been released
	}{
		{"little is free", 130 * mib, 0, 0},
		{"much is free, and will be used soon", 250 * mib, 20 * mib, 0},
		{"much is free, and hardly anything happens", 250 * mib, 4 * mib, 1},
		{"what could not be released is not tried again", 141 * mib, 0, 1},
		{"much is free again", 200 * mib, 0, 2},
	} {
		now.held, now.live, now.allocated = step.held, 100*mib, now.allocated+step.allocated
		if h.check(); given != step.want {
			t.Errorf("%s: released %d times, want %d", step.what, given, step.want)
		}
	}
}

func TestMemoryIsGivenBack(t *testing.T) {
	h := newHousekeeper()
	garbage := make([]byte, 256<<20)
	for i := 0; i < len(garbage); i += 4096 {
		garbage[i] = 1
	}
	garbage = nil
	runtime.GC() // frees the memory, and keeps it
	h.last = h.read()
	before := h.last.held
	h.check()
	if after := h.read().held; after+200<<20 > before {
		t.Errorf("%d MiB are held, %d MiB before", after>>20, before>>20)
	}
}

func TestGoalOfCollections(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ headroom, live, want int64 }{
		{128 * mib, 16 * mib, 800}, {128 * mib, 64 * mib, 200}, {128 * mib, 128 * mib, 100}, {128 * mib, 1000 * mib, 100},
		{128 * mib, mib, mostPercent}, {128 * mib, 0, mostPercent}, {0, 10 * mib, 100}, {-mib, 10 * mib, 100},
	} {
		if got := percentOf(c.headroom, c.live); got != c.want {
			t.Errorf("%d MiB live, a headroom of %d: %d %%, want %d", c.live/mib, c.headroom/mib, got, c.want)
		}
	}
	b := newBudget(256*mib, nil, func() (int64, int64) { return 1000 * mib, 50 * mib })
	if got, scarce := NewBudget(256*mib, nil).headroom(), b.headroom(); scarce != 32*mib || got != 32*mib && got != 128*mib {
		t.Errorf("of a budget of 256 MiB: %d, with little memory %d", got, scarce)
	}
}

func TestCollectionsAreDelayed(t *testing.T) {
	t.Setenv("GOGC", "")
	becomes := func(ok func(percent uint64) bool) {
		t.Helper()
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		for end := time.Now().Add(10 * time.Second); ; {
			runtime.GC() // which the finalizer follows
			if metrics.Read(sample); ok(sample[0].Value.Uint64()) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("GOGC is %d", sample[0].Value.Uint64())
			}
		}
	}
	c := delayCollections(1 << 30)
	becomes(func(percent uint64) bool { return percent > usualPercent })
	c.end()
	becomes(func(percent uint64) bool { return percent == usualPercent })
}
