package main

import (
	"strings"
	"testing"
	"time"
)

func TestTableSetsTheFirstBesideTheSecond(t *testing.T) {
	of := func(took time.Duration, cpu time.Duration, memory int64) result {
		latencies := make([]time.Duration, 100)
		for i := range latencies {
			latencies[i] = time.Duration(i+1) * took
		}
		return result{samples: samples{operations: 100, latencies: latencies}, elapsed: 100 * took, cpu: cpu, memory: memory}
	}
	table := newTable([]*target{{name: "portico"}, {name: "peer"}})
	table.add(scenario{name: "get"}, []result{
		of(time.Millisecond, 10*time.Millisecond, 100<<20), of(2*time.Millisecond, 40*time.Millisecond, 400<<20),
	})
	var out strings.Builder
	if err := table.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| get | portico | 1000 | 50ms | 99ms | 100µs | 100 MiB |",
		"| get | peer | 500 | 100ms | 198ms | 400µs | 400 MiB |",
		"| | ratio | 2.00 | 0.50 | 0.50 | 0.25 | 0.25 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}
