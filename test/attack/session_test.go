package attack

import (
	"strings"
	"testing"
	"time"
)

// TestReportFindsFaults checks every fault that makes a session fail.
func TestReportFindsFaults(t *testing.T) {
	fine := Figures{Count: 5, Slowest: time.Millisecond}
	good := func() *Report {
		return &Report{Limits: Limits{Memory: 100, Slowest: time.Second}, Held: 90, Memory: map[string]int64{"a": 60, "b": 50}, Reads: fine, Writes: fine}
	}
	if faults := good().Faults(); len(faults) > 0 {
		t.Errorf("a good session has faults: %q", faults)
	}
	for want, spoil := range map[string]func(*Report){
		"the processes held":             func(r *Report) { r.Held = 110 },
		"slowest write took":             func(r *Report) { r.Writes.Slowest = time.Minute },
		"probe did not read":             func(r *Report) { r.Reads.Count = 0 },
		"1 unexpected server":            func(r *Report) { r.ServerErrors = 1 },
		"in a log: panic":                func(r *Report) { r.Panics = []string{"panic"} },
		"the log of a contains":          func(r *Report) { r.Leaks = []string{"a"} },
		"the administrator's probe: 429": func(r *Report) { r.ProbeErrors = []string{"429"} },
	} {
		r := good()
		spoil(r)
		if faults := strings.Join(r.Faults(), "\n"); !strings.Contains(faults, want) || !strings.Contains(r.String(), want) {
			t.Errorf("got %q, want %q", faults, want)
		}
	}
}
