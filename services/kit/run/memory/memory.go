// Package memory gives memory back to the system when a process has come to rest. It
// decides when that is worth a collection, and never limits what a process may use.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is the pause between two looks at the memory.
	lookEvery = 5 * time.Second
	// soon is how far ahead memory is kept: what would be used again that soon is
	// not worth giving back.
	soon = time.Minute
	// worthwhile is the least that is given back.
	worthwhile = 32 << 20
)

// memory is what the runtime says of the heap, in bytes.
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

// housekeeper gives memory back to the system when the process has come to rest.
// The runtime keeps what it needs until the next collection, about as much again as
// is live: right under load, and a waste when nothing is allocated for minutes.
type housekeeper struct {
	read     func() memory
	giveBack func() // collects, and returns all that is free
	last     memory
	// stays is what could not be given back the last time: small free pieces.
	stays uint64
}

// run looks after the memory until ctx ends.
func (h *housekeeper) run(ctx context.Context) {
	h.last = h.read()
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			h.look()
		case <-ctx.Done():
			return
		}
	}
}

// look gives memory back when much of it will not be used soon, by what was
// allocated since the last look.
func (h *housekeeper) look() {
	now := h.read()
	needed := (now.allocated - h.last.allocated) * uint64(soon/lookEvery)
	if now.held > now.live+needed+h.stays+worthwhile {
		h.giveBack()
		now = h.read()
		h.stays = now.held - min(now.live, now.held)
	}
	h.last = now
}

// Tidy looks after the memory of the process until ctx ends.
func Tidy(ctx context.Context) { newHousekeeper().run(ctx) }

func newHousekeeper() *housekeeper {
	return &housekeeper{read: readMemory, giveBack: debug.FreeOSMemory}
}
