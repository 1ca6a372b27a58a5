package figures

import (
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/load"
)

// paired returns a line of two servers with these CPU times for 100 operations.
func paired(name string, own, before []int) Line {
	l := Line{Name: name, Part: "Reads", Results: make([][]Result, 2)}
	for server, times := range [][]int{own, before} {
		for _, ms := range times {
			l.Results[server] = append(l.Results[server], Result{Samples: load.Samples{Operations: 100}, Elapsed: time.Second, Server: time.Duration(ms) * time.Millisecond})
		}
	}
	return l
}

func TestPairsFailBeyondNoise(t *testing.T) {
	p := &Pairs{Metric: ServerCPU, Level: 0.05, Tolerance: 1.02}
	noisy := []int{90, 130, 100, 95, 120, 105, 99, 110}
	for name, c := range map[string]struct {
		own, before []int
		fails       bool
	}{
		"slower in all pairs, less than the noise between them": {[]int{95, 140, 104, 99, 126, 110, 103, 115}, noisy, true},
		"slower in half of the pairs":                           {[]int{140, 90, 140, 90, 140, 90, 140, 90}, noisy, false},
		"faster":                                                {[]int{80, 80, 80, 80, 80, 80, 80, 80}, noisy, false},
		"the same":                                              {noisy, noisy, false},
		"slower in all pairs within the tolerance":              {[]int{91, 131, 101, 96, 121, 106, 100, 111}, noisy, false},
	} {
		// Beside another measurement each has half of the level.
		err := p.Failures([]Line{paired("list", c.own, c.before), paired("get", noisy, noisy)})
		if failed := err != nil; failed != c.fails {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "list: server CPU per operation is 1.05 times that of before, more in 8 of 8 pairs") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPairsNeedEnoughRounds(t *testing.T) {
	p := &Pairs{Level: 0.05}
	if err := p.Enough(6, 2); err != nil {
		t.Error(err)
	}
	if err := p.Enough(5, 2); err == nil || !strings.Contains(err.Error(), "at least 6") {
		t.Errorf("5 rounds of 2 measurements: %v", err)
	}
	if err := (*Pairs)(nil).Enough(1, 1); err != nil {
		t.Error(err)
	}
}

func TestReportOfPairs(t *testing.T) {
	r := Report{Summary: "two versions", Servers: []string{"portico", "before"}, Markdown: true, Pairs: &Pairs{Metric: ServerCPU, Level: 0.05, Tolerance: 1.02},
		Lines: []Line{paired("list", []int{12, 13, 12, 12, 13}, []int{10, 10, 10, 10, 10})}}
	contains(t, r, "### In pairs: server CPU per operation", "| list | 5 | 5 | 1.200 | 0.0312 | yes |")
}
