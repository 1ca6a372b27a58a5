package memory

import (
	"runtime"
	"testing"
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
