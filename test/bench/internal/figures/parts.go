package figures

import (
	"fmt"
	"slices"
	"time"
)

// Part is one process of a server, and what it used and did.
type Part struct {
	Name string
	CPU  time.Duration
	// SystemCalls are those that read or write.
	SystemCalls int64
	// Calls are the calls of other services that it answered, by method.
	Calls map[string]int64
}

// Since returns the difference to what the process had used and done before.
func (p Part) Since(before Part) Part {
	calls := map[string]int64{}
	for method, n := range p.Calls {
		calls[method] = n - before.Calls[method]
	}
	return Part{Name: p.Name, CPU: p.CPU - before.CPU, SystemCalls: p.SystemCalls - before.SystemCalls, Calls: calls}
}

// allParts stands for all processes of a server.
const allParts = -1

// partCPU returns the median CPU time per operation of one process.
func partCPU(results []Result, i int) string {
	if i == allParts {
		return ServerCPU.text(ServerCPU.overall(results))
	}
	only := make([]Result, len(results))
	for j, r := range results {
		only[j] = Result{Samples: r.Samples, Server: r.Parts[i].CPU}
	}
	return ServerCPU.text(ServerCPU.overall(only))
}

// partSystemCalls returns the median of the system calls per operation of one process.
func partSystemCalls(results []Result, i int) string {
	return perOperation(results, func(r *Result) (sum int64) {
		for j, p := range r.Parts {
			if i == j || i == allParts {
				sum += p.SystemCalls
			}
		}
		return sum
	})
}

// perOperation returns the median of a count per operation.
func perOperation(results []Result, count func(*Result) int64) string {
	var all []float64
	for i := range results {
		if results[i].Operations > 0 {
			all = append(all, float64(count(&results[i]))/float64(results[i].Operations))
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("%.3g", all[len(all)/2])
}
