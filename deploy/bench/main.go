// Command bench measures a cluster API service from outside: what reads, lists,
// watches and writes cost the server in CPU time and memory, how many it does and
// how long they take.
//
// It starts Portico and, beside it, the reference server with etcd, and measures
// them in turns within one run, so that both meet the same machine; or it measures
// whatever answers at -url. It decides what is measured and sets the figures beside
// the goals of the project; it explains nothing and fails on none of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/portico-platform/portico/deploy/bench/internal/figures"
)

// settings are the flags.
type settings struct {
	portico, peer string
	url, token    string
	pids          []int

	only     string
	markdown bool

	pods, creates  int
	watchers, rate int
	duration       time.Duration
	settle         time.Duration
	rounds         int
}

func main() {
	s := settings{}
	flag.StringVar(&s.portico, "portico", "", "the all-in-one to start and measure")
	flag.StringVar(&s.peer, "peer", "", "folder with the programs apiserver and etcd to start and measure beside it")
	flag.StringVar(&s.url, "url", "", "measure what answers at this base URL (https)")
	flag.StringVar(&s.token, "token", "", "bearer token for -url")
	flag.Func("pid", "process behind -url, for CPU and memory; more than one with commas", s.addProcesses)
	flag.StringVar(&s.only, "only", "", "measure only what this regular expression finds in its name")
	flag.BoolVar(&s.markdown, "markdown", false, "report in Markdown")
	flag.IntVar(&s.pods, "pods", 10000, "how many pods there are to get, list and watch")
	flag.IntVar(&s.creates, "creates", 3000, "how many objects each measurement of creates makes")
	flag.IntVar(&s.watchers, "watchers", 1000, "how many watchers follow the changes")
	flag.IntVar(&s.rate, "rate", 100, "how many changes per second they follow")
	flag.DurationVar(&s.duration, "duration", 5*time.Second, "how long everything goes on that is not counted")
	flag.DurationVar(&s.settle, "settle", 150*time.Second, "how long the servers rest before their memory is looked at")
	flag.IntVar(&s.rounds, "rounds", 3, "how often each measurement is repeated, in turns; the median counts")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, &s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (s *settings) addProcesses(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		s.pids = append(s.pids, pid)
	}
	return nil
}

// summary says in a line what makes figures comparable.
func (s *settings) summary(targets []*target) string {
	var servers []string
	for _, t := range targets {
		servers = append(servers, strings.TrimSpace(t.name+" "+t.version))
	}
	return fmt.Sprintf("%s; %s; %d CPUs for servers and load; %d pods; %d creates or %v a measurement; %d watchers, %d changes a second; medians of %d rounds.",
		time.Now().Format(time.DateOnly), strings.Join(servers, ", "), runtime.NumCPU(), s.pods, s.creates, s.duration, s.watchers, s.rate, s.rounds)
}

func run(ctx context.Context, s *settings) (err error) {
	selected, err := choose(scenarios(), s.only)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	targets, err := begin(ctx, s, work)
	defer func() {
		for _, t := range targets {
			t.stop()
		}
	}()
	if err != nil {
		return err
	}
	if err := prepare(ctx, s, selected, targets); err != nil {
		return err
	}
	report := figures.Report{Summary: s.summary(targets), Servers: names(targets), Markdown: s.markdown}
	var failures []error
	for _, sc := range selected {
		results, err := alternate(ctx, s, sc, targets)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", sc.name, err)
			failures = append(failures, fmt.Errorf("%s: %w", sc.name, err))
			continue
		}
		report.Lines = append(report.Lines, figures.Line{Name: sc.name, Part: sc.part, Goals: sc.goals, Results: results})
	}
	return errors.Join(append(failures, report.Print(os.Stdout))...)
}

// begin starts the targets; those that it returns with an error have to be stopped,
// too.
func begin(ctx context.Context, s *settings, work string) (targets []*target, err error) {
	for _, start := range starters(s, work) {
		t, err := start(ctx)
		if t != nil {
			targets = append(targets, t)
		}
		if err != nil {
			return targets, err
		}
	}
	if len(targets) == 0 {
		return nil, errors.New("nothing to measure: give -portico, -peer or -url")
	}
	return targets, nil
}

func names(targets []*target) (all []string) {
	for _, t := range targets {
		all = append(all, t.name)
	}
	return all
}

// choose keeps the scenarios whose names match.
func choose(all []scenario, only string) (chosen []scenario, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	names := "-only matches none of:"
	for _, sc := range all {
		names += "\n  " + sc.name
		if match.MatchString(sc.name) {
			chosen = append(chosen, sc)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New(names)
	}
	return chosen, nil
}

// prepare makes the pods if a scenario wants them, and lets the servers rest.
func prepare(ctx context.Context, s *settings, selected []scenario, targets []*target) error {
	wanted := false
	for _, sc := range selected {
		wanted = wanted || sc.pods
	}
	if !wanted {
		return nil
	}
	for _, t := range targets {
		fmt.Fprintf(os.Stderr, "%-8s takes %d pods\n", t.name, s.pods)
		if err := t.fill(ctx, s.pods); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return settle(ctx, s, targets)
}

// alternate runs one scenario against all targets in turns.
func alternate(ctx context.Context, s *settings, sc scenario, targets []*target) ([][]figures.Result, error) {
	all := make([][]figures.Result, len(targets))
	for range s.rounds {
		for i, t := range targets {
			if err := once(ctx, s, sc, t, &all[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	return all, nil
}

// once runs a scenario once; its connections end with it.
func once(ctx context.Context, s *settings, sc scenario, t *target, results *[]figures.Result) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &measurement{target: t, settings: s}
	if err := sc.run(ctx, m); err != nil {
		return err
	}
	*results = append(*results, m.result)
	fmt.Fprintf(os.Stderr, "%-8s %-40s %s\n", t.name, sc.name, m.result)
	return nil
}
