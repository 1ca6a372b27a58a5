// Command bench measures a cluster API service from outside: creates, gets, lists
// of many pods, and changes that go to many watchers. For each it tells throughput,
// latency, and what an operation costs the server in CPU time and memory.
//
// It starts Portico and, beside it, the reference server with etcd, and measures
// them in turns within one run, so that both meet the same machine; or it measures
// whatever answers at -url. It decides what is measured, and judges nothing: the
// ratios are printed as they are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"
)

// settings are the flags.
type settings struct {
	portico, peer string
	url, token    string
	pid           int

	pods, clients  int
	watchers, rate int
	duration       time.Duration
	rounds         int
	only           string
}

func main() {
	s := settings{}
	flag.StringVar(&s.portico, "portico", "", "the all-in-one to start and measure")
	flag.StringVar(&s.peer, "peer", "", "folder with the programs apiserver and etcd to start and measure beside it")
	flag.StringVar(&s.url, "url", "", "measure what answers at this base URL")
	flag.StringVar(&s.token, "token", "", "bearer token for -url")
	flag.IntVar(&s.pid, "pid", 0, "process behind -url, for CPU and memory")
	flag.IntVar(&s.pods, "pods", 10000, "how many pods to create and list")
	flag.IntVar(&s.clients, "clients", 32, "how many clients create and get at a time")
	flag.IntVar(&s.watchers, "watchers", 1000, "how many watchers follow the changes")
	flag.IntVar(&s.rate, "rate", 100, "how many changes per second they follow")
	flag.DurationVar(&s.duration, "duration", 5*time.Second, "how long gets, lists and changes go on")
	flag.IntVar(&s.rounds, "rounds", 3, "how often each measurement but the creates is repeated, in turns; the median counts")
	flag.StringVar(&s.only, "only", "", "regular expression: measure only what it matches by name")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, &s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s *settings) (err error) {
	work, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var targets []*target
	defer func() {
		for _, t := range targets {
			t.stop()
		}
	}()
	for _, start := range starters(s, work) {
		t, startError := start(ctx)
		if t != nil {
			targets = append(targets, t)
		}
		if startError != nil {
			return startError
		}
	}
	if len(targets) == 0 {
		return errors.New("nothing to measure: give -portico, -peer or -url")
	}
	only, err := regexp.Compile(s.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	table := newTable(targets)
	for _, scenario := range scenarios() {
		if !only.MatchString(scenario.name) {
			continue
		}
		rows, err := measure(ctx, s, scenario, targets)
		if err != nil {
			return fmt.Errorf("%s: %w", scenario.name, err)
		}
		table.add(scenario, rows)
	}
	return table.print(os.Stdout)
}

// measure runs one scenario against all targets in turns and returns the median
// of each, by throughput.
func measure(ctx context.Context, s *settings, sc scenario, targets []*target) ([]result, error) {
	rounds := s.rounds
	if sc.once {
		rounds = 1
	}
	all := make([][]result, len(targets))
	for range rounds {
		for i, t := range targets {
			r, err := t.observe(func() (samples, error) { return sc.run(ctx, t, s) })
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			fmt.Fprintf(os.Stderr, "%-8s %-30s %s\n", t.name, sc.name, r)
			all[i] = append(all[i], r)
		}
	}
	var medians []result
	for _, results := range all {
		slices.SortFunc(results, func(a, b result) int { return int(a.perSecond() - b.perSecond()) })
		medians = append(medians, results[len(results)/2])
	}
	return medians, nil
}
