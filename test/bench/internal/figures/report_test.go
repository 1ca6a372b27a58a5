package figures

import (
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/load"
)

// runs returns three runs of 100 operations, one of them much slower than the others.
func runs(took, server time.Duration, memory int64) []Result {
	latencies := make([]time.Duration, 100)
	for i := range latencies {
		latencies[i] = time.Duration(100-i) * took
	}
	one := Result{Samples: load.Samples{Operations: 100, Latencies: latencies, Bytes: 409600}, Elapsed: 100 * took, Server: server, Memory: memory << 20}
	slow := one
	slow.Elapsed, slow.Server = 50*one.Elapsed, 50*one.Server
	return []Result{one, slow, one}
}

func report() Report {
	return Report{
		Summary: "two servers", Servers: []string{"portico", "peer"},
		Lines: []Line{
			{Name: "get", Part: "Reads", Goals: []Goal{
				AtLeast(Throughput, 3), AtMost(ServerCPU, 0.25), AtMost(Tail, 1./3), Below(Memory, 100<<20),
			}, Results: [][]Result{runs(time.Millisecond, 10*time.Millisecond, 100), runs(2*time.Millisecond, 40*time.Millisecond, 400)}},
			{Name: "rest", Part: "Reads", Results: [][]Result{{{Memory: 3 << 20, AtRest: 1 << 20}}, {{Memory: 2 << 20}}}},
		},
	}
}

func TestReportHoldsTheFirstAgainstTheSecond(t *testing.T) {
	r := report()
	r.Markdown = true
	contains(t, r,
		"### Reads and their goals",
		"| get | per second | 1000 | 500 | 2.00 | ≥ 3 | no |",
		"| get | server CPU per operation | 100µs | 400µs | 0.25 | ≤ 0.25 | yes |",
		"| get | p99 | 99ms | 198ms | 0.50 | ≤ 0.333 | no |",
		"| get | memory | 100 MiB | 400 MiB | 0.25 | ≤ 100 MiB | yes |",
		"| get | peer | 500 | 100ms | 198ms | 400µs | 0s | 4.0 KiB | 400 MiB |  |",
		"| rest | portico |  |  |  |  |  |  | 3 MiB | 2 MiB |",
	)
}

func TestReportOfProcesses(t *testing.T) {
	r := report()
	r.Markdown = true
	for i := range r.Lines[0].Results[0] {
		server := &r.Lines[0].Results[0][i]
		operations := int64(server.Operations)
		server.Parts = []Part{
			{Name: "store", CPU: server.Server / 4, SystemCalls: 2 * operations, Calls: map[string]int64{"Store/Get": operations / 2}},
			{Name: "frontdoor", CPU: server.Server * 3 / 4, SystemCalls: 3 * operations},
		}
	}
	contains(t, r,
		"### CPU per operation of each process: portico",
		"| measurement | all | store | frontdoor |",
		"| get | 100µs | 25µs | 75µs |",
		"### Reading and writing system calls per operation of each process: portico",
		"| get | 5 | 2 | 3 |",
		"### Calls between services per operation: portico",
		"| measurement | Store/Get |",
		"| get | 0.5 |",
	)
}

func TestReportInColumns(t *testing.T) {
	contains(t, report(), "READS AND THEIR GOALS", "get          per second                1000     500")
}

func TestReportOfOneServerHasNoGoals(t *testing.T) {
	r := report()
	r.Servers = r.Servers[:1]
	for i := range r.Lines {
		r.Lines[i].Results = r.Lines[i].Results[:1]
	}
	contains(t, r, "ALL FIGURES")
	var out strings.Builder
	if err := r.Print(&out); err != nil || strings.Contains(out.String(), "GOALS") {
		t.Errorf("got %v\n%s", err, out.String())
	}
}

func contains(t *testing.T, r Report, lines ...string) {
	t.Helper()
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range lines {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

// TestFiguresBesideOthers: some figures need another measurement, and goals hold for them.
func TestFiguresBesideOthers(t *testing.T) {
	one := load.Samples{Operations: 10, Latencies: []time.Duration{time.Millisecond}}
	plain := Result{Samples: one, Elapsed: time.Second, Server: 10 * time.Millisecond}
	list := Result{Samples: one, Elapsed: time.Second, Server: 15 * time.Millisecond, Floor: &plain}
	write := Result{Samples: one, Elapsed: time.Second, Fsync: 800 * time.Microsecond}
	for _, c := range []struct {
		result  Result
		metric  Metric
		applies bool
		text    string
	}{
		{list, AboveFloor, true, "1.50"},
		{list, BeyondFsync, false, ""},
		{write, BeyondFsync, true, "200µs"},
		{write, AboveFloor, false, ""},
	} {
		if got := c.metric.applies(c.result); got != c.applies {
			t.Errorf("%v applies: %v", c.metric, got)
		}
		if got := c.metric.text(c.metric.of(c.result)); c.applies && got != c.text {
			t.Errorf("%v is %s, want %s", c.metric, got, c.text)
		}
	}
}
