// Package figures holds the results of benchmarks: the result of a run, the figures that
// are computed from it, the goals of the project for them, and the report that compares
// two servers.
//
// It defines figures, their medians over several runs, and when a goal is met. It measures
// nothing, and a missed goal is not an error. The goals are the project's own; the
// specification has none.
package figures

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/internal/load"
)

// Result is one run of a measurement.
type Result struct {
	load.Samples
	Elapsed time.Duration
	// The CPU time during the run: of the server, of the load, of the rest of the machine.
	Server, Load, Others time.Duration
	// Parts is the CPU time of the server by process.
	Parts []Part
	// The server's resident memory in bytes: the maximum during the run, and before all
	// measurements.
	Memory, AtRest int64
	// Floor is the same load on a plain TLS server; nil if it was not measured.
	Floor *Result
	// Fsync is the time of an fsync on the disk of the server; 0 if it was not measured.
	Fsync time.Duration
}

// String returns all figures in one line.
func (r Result) String() string {
	var parts []string
	for m := range metrics {
		if m.applies(r) {
			parts = append(parts, m.String()+" "+m.text(m.of(r)))
		}
	}
	return strings.Join(parts, ", ")
}

// Metric is a figure of a result.
type Metric int

// The figures.
const (
	Throughput  Metric = iota // operations a second
	Median                    // latency
	Tail                      // latency of the slowest hundredth
	ServerCPU                 // for each operation
	LoadCPU                   // for each operation, of the load itself
	Size                      // bytes received for each operation
	Memory                    // maximum resident memory
	Growth                    // of the memory since the server was idle
	Others                    // cores used by other processes
	AboveFloor                // server CPU in multiples of that of a plain TLS server
	BeyondFsync               // median latency less the time of an fsync
	metrics                   // the number of metrics
)

// String returns the figure's name in a report.
func (m Metric) String() string {
	return [...]string{"per second", "p50", "p99", "server CPU per operation", "load CPU per operation",
		"size", "memory", "memory growth", "others' cores", "of a plain TLS server's CPU", "p50 beyond fsync"}[m]
}

// applies reports whether a result has the figure: most figures need operations.
func (m Metric) applies(r Result) bool {
	switch m {
	case Growth:
		return r.AtRest > 0
	case Memory, Others:
		return true
	case AboveFloor:
		return r.Floor != nil
	case BeyondFsync:
		return r.Fsync > 0
	}
	return r.Operations > 0
}

// of returns the figure: times in nanoseconds, sizes in bytes.
func (m Metric) of(r Result) float64 {
	each := float64(max(1, r.Operations))
	switch m {
	case Throughput:
		return float64(r.Operations) / r.Elapsed.Seconds()
	case Median:
		return r.quantile(0.5)
	case Tail:
		return r.quantile(0.99)
	case ServerCPU:
		return float64(r.Server) / each
	case LoadCPU:
		return float64(r.Load) / each
	case Size:
		return float64(r.Bytes) / each
	case Memory:
		return float64(r.Memory)
	case Growth:
		return float64(r.Memory - r.AtRest)
	case Others:
		return float64(r.Others) / float64(r.Elapsed)
	case AboveFloor:
		if r.Floor != nil {
			return ServerCPU.of(r) / ServerCPU.of(*r.Floor)
		}
	case BeyondFsync:
		return r.quantile(0.5) - float64(r.Fsync)
	}
	return 0
}

// overall returns the median of the figure over several runs.
func (m Metric) overall(results []Result) float64 {
	var all []float64
	for _, r := range results {
		all = append(all, m.of(r))
	}
	return median(all)
}

func (m Metric) text(value float64) string {
	switch m {
	case Throughput:
		return fmt.Sprintf("%.*f", decimals(value), value)
	case Size:
		return fmt.Sprintf("%.*f KiB", decimals(value/1024), value/1024)
	case Memory, Growth:
		return fmt.Sprintf("%.0f MiB", value/(1<<20))
	case Others, AboveFloor:
		return fmt.Sprintf("%.2f", value)
	}
	return brief(time.Duration(value)).String()
}

func decimals(value float64) int {
	if value < 100 {
		return 1
	}
	return 0
}

// MedianLatency returns the median of the latencies.
func (r Result) MedianLatency() time.Duration { return time.Duration(r.quantile(0.5)) }

func (r Result) quantile(q float64) float64 {
	if len(r.Latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Latencies))
	return float64(sorted[int(q*float64(len(sorted)-1))])
}

// brief rounds to three significant digits.
func brief(d time.Duration) time.Duration {
	for unit := time.Nanosecond; unit < time.Minute; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Second)
}
