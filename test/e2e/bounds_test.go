package e2e

import (
	"flag"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// bounded makes the tests of the bounds on faults repeat them, alone, and assert the bounds. One
// measurement on a machine that does something else proves nothing, so the tests only log it.
var bounded = flag.Int("bounds", 0, "how many `rounds` TestLostHub and TestCrashedClaim measure, after which they assert their bounds; 0 is one round without")

// measured are durations by what was measured.
type measured struct {
	mu   sync.Mutex
	took map[string][]time.Duration
}

func (m *measured) add(what string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.took == nil {
		m.took = map[string][]time.Duration{}
	}
	m.took[what] = append(m.took[what], took)
}

// rounds calls measure once, or as often as -bounds says, and then shows and asserts that nine
// of ten measurements of each name are within the bound.
func (m *measured) rounds(t *testing.T, bound time.Duration, measure func(t *testing.T)) {
	t.Helper()
	if *bounded == 0 {
		t.Parallel()
	}
	for range max(1, *bounded) {
		if measure(t); t.Failed() {
			t.FailNow()
		}
	}
	if *bounded == 0 {
		return
	}
	t.Logf("| what | measurements | median | 90th percentile | longest | bound |\n|---|---:|---:|---:|---:|---:|")
	for _, what := range slices.Sorted(maps.Keys(m.took)) {
		took := slices.Sorted(slices.Values(m.took[what]))
		at := func(percent int) time.Duration {
			return took[(len(took)*percent+99)/100-1].Round(10 * time.Millisecond)
		}
		t.Logf("| %s | %d | %v | %v | %v | %v |", what, len(took), at(50), at(90), at(100), bound)
		if at(90) > bound {
			t.Errorf("%s takes %v, more than %v", what, at(90), bound)
		}
	}
}
