package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// samples are the operations of one run of a scenario.
type samples struct {
	operations int
	latencies  []time.Duration // of all of them, or of some
}

// result is one run of a scenario as it is reported.
type result struct {
	samples
	elapsed, cpu time.Duration
	memory       int64
}

// observe runs a load and looks at the target's processes meanwhile.
func (t *target) observe(load func() (samples, error)) (result, error) {
	began, before := time.Now(), t.cpu()
	s, err := load()
	slices.Sort(s.latencies)
	return result{samples: s, elapsed: time.Since(began), cpu: t.cpu() - before, memory: t.memory()}, err
}

func (r result) perSecond() float64 { return float64(r.operations) / r.elapsed.Seconds() }

func (r result) quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[int(q*float64(len(r.latencies)-1))]
}

func (r result) cpuPerOperation() time.Duration {
	return r.cpu / time.Duration(max(1, r.operations))
}

func (r result) String() string {
	return fmt.Sprintf("%9.0f/s  p50 %-9v p99 %-9v CPU %-9v RSS %d MiB", r.perSecond(),
		brief(r.quantile(0.5)), brief(r.quantile(0.99)), brief(r.cpuPerOperation()), r.memory>>20)
}

// brief rounds to three digits or so.
func brief(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}

// table is the report: a line per scenario and target, in Markdown, and where
// there are two targets a line with the first as a ratio of the second.
type table struct {
	targets []*target
	lines   []string
}

func newTable(targets []*target) *table {
	return &table{targets, []string{
		"| measurement | server | per second | p50 | p99 | CPU per operation | memory |",
		"|---|---|---:|---:|---:|---:|---:|",
	}}
}

func (t *table) add(sc scenario, results []result) {
	for i, r := range results {
		t.lines = append(t.lines, fmt.Sprintf("| %s | %s | %.0f | %v | %v | %v | %d MiB |", sc.name, t.targets[i].name,
			r.perSecond(), brief(r.quantile(0.5)), brief(r.quantile(0.99)), brief(r.cpuPerOperation()), r.memory>>20))
	}
	if len(results) != 2 {
		return
	}
	a, b := results[0], results[1]
	t.lines = append(t.lines, fmt.Sprintf("| | ratio | %.2f | %.2f | %.2f | %.2f | %.2f |", a.perSecond()/b.perSecond(),
		ratio(a.quantile(0.5), b.quantile(0.5)), ratio(a.quantile(0.99), b.quantile(0.99)),
		ratio(a.cpuPerOperation(), b.cpuPerOperation()), float64(a.memory)/float64(b.memory)))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func (t *table) print(w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Join(t.lines, "\n"))
	return err
}
