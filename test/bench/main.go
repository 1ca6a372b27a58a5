// Command bench measures a cluster API service from outside: CPU time, memory, throughput
// and latency of reads, lists, watches and writes.
//
// It starts Portico and the reference server with etcd, and measures them alternately in
// one run, under the same conditions; or it measures a server at -url. It compares the
// figures with the goals of the project, and does not fail if they are missed.
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

	"github.com/portico-platform/portico/test/bench/internal/figures"
	"github.com/portico-platform/portico/test/bench/internal/floor"
)

// settings are the flags.
type settings struct {
	portico, peer string
	before        string
	processes     string
	etcdApart     bool
	beside        int
	permissions   string
	url, token    string
	pids          []int

	only     string
	markdown bool

	pods, creates  int
	definitions    int
	watchers, rate int
	duration       time.Duration
	idlePeriod     time.Duration
	rounds         int

	work string // a folder for all files
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == floor.Command {
		fmt.Fprintln(os.Stderr, floor.Main(os.Args[2:]))
		os.Exit(1)
	}
	s := settings{}
	flag.StringVar(&s.portico, "portico", "", "program of the all-in-one to start and measure")
	flag.StringVar(&s.peer, "peer", "", "folder with the programs apiserver and etcd to start and measure as the peer")
	flag.StringVar(&s.before, "before", "", "program of an earlier all-in-one to measure beside -portico, or with -processes a folder with earlier programs; the exit status is 1 if the later one needs more CPU beyond noise")
	flag.IntVar(&s.beside, "beside", 0, "start -portico a second time with this number of pods, and compare with it what depends on their number")
	flag.StringVar(&s.processes, "processes", "", "folder with the programs of the services, etcd and nats to start as separate processes and measure beside the all-in-one")
	flag.BoolVar(&s.etcdApart, "etcd-apart", false, "also start -portico with the etcd of -processes as a process, and measure it beside both")
	flag.StringVar(&s.permissions, "nats-permissions", "deploy/nats/permissions.conf", "NATS configuration with the users of -processes")
	flag.StringVar(&s.url, "url", "", "measure a running server at this base URL (https)")
	flag.StringVar(&s.token, "token", "", "bearer token for -url")
	flag.Func("pid", "process IDs of the server at -url, for CPU and memory; separated by commas", s.addProcesses)
	flag.StringVar(&s.only, "only", "", "measure only scenarios whose name matches this regular expression")
	flag.BoolVar(&s.markdown, "markdown", false, "write the report in Markdown")
	flag.IntVar(&s.pods, "pods", 10000, "number of pods to get, list and watch")
	flag.IntVar(&s.creates, "creates", 3000, "number of objects that each measurement of creates makes")
	flag.IntVar(&s.definitions, "definitions", 200, "number of CustomResourceDefinitions that documents describe")
	flag.IntVar(&s.watchers, "watchers", 1000, "number of watchers of the changes")
	flag.IntVar(&s.rate, "rate", 100, "number of changes per second to watch")
	flag.DurationVar(&s.duration, "duration", 5*time.Second, "duration of measurements without a fixed number of operations")
	flag.DurationVar(&s.idlePeriod, "settle", 150*time.Second, "how long the servers are idle before their memory is measured")
	flag.IntVar(&s.rounds, "rounds", 3, "number of alternating runs of each measurement; the median is reported")
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

// summary describes the conditions of the measurement in one line.
func (s *settings) summary(targets []*target) string {
	var servers []string
	for _, t := range targets {
		servers = append(servers, strings.TrimSpace(t.name+" "+t.version))
	}
	return fmt.Sprintf("%s; %s; %d CPUs for servers and load; %d pods; %d creates or %v a measurement; %d watchers, %d changes a second; medians of %d rounds.",
		time.Now().Format(time.DateOnly), strings.Join(servers, ", "), runtime.NumCPU(), s.pods, s.creates, s.duration, s.watchers, s.rate, s.rounds)
}

func run(ctx context.Context, s *settings) (err error) {
	selected, err := choose(s.scenarios(), s.only)
	if err != nil {
		return err
	}
	if err := s.pairs().Enough(s.rounds, len(selected)); err != nil {
		return err
	}
	s.work, err = os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(s.work)
	targets, err := begin(ctx, s)
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
	report := figures.Report{Summary: s.summary(targets), Servers: names(targets), Pairs: s.pairs(), Markdown: s.markdown}
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
	return errors.Join(append(failures, report.Print(os.Stdout), report.Pairs.Failures(report.Lines))...)
}

// begin starts the targets. Targets that are returned with an error must be stopped too.
func begin(ctx context.Context, s *settings) (targets []*target, err error) {
	for _, start := range starters(s) {
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

// choose returns the scenarios whose names match.
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

// prepare creates the pods if a scenario needs them, and waits until the servers are idle.
func prepare(ctx context.Context, s *settings, selected []scenario, targets []*target) error {
	needed := false
	for _, sc := range selected {
		needed = needed || sc.pods
	}
	if !needed {
		return nil
	}
	for _, t := range targets {
		fmt.Fprintf(os.Stderr, "%-8s preparing %d pods\n", t.name, t.pods)
		if err := t.fill(ctx); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return recordIdleMemory(ctx, s, targets)
}

// alternate runs one scenario against all targets alternately.
func alternate(ctx context.Context, s *settings, sc scenario, targets []*target) ([][]figures.Result, error) {
	all := make([][]figures.Result, len(targets))
	for round := range s.rounds {
		for i := range targets {
			if round%2 == 1 { // none is always the first
				i = len(targets) - 1 - i
			}
			if err := once(ctx, s, sc, targets[i], &all[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", targets[i].name, err)
			}
		}
	}
	return all, nil
}

// once runs a scenario once and then closes its connections.
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
