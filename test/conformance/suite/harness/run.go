package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Result is the outcome of one check.
type Result struct {
	ID      string  `json:"id"`
	Section string  `json:"section"`
	Says    string  `json:"says"`
	Config  string  `json:"config"`
	Outcome string  `json:"outcome"` // passed, failed or skipped
	Text    string  `json:"text,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Run is the program: it parses flags, runs the checks and reports.
func Run() {
	pattern := flag.String("run", "", "run only checks whose id, section or configuration matches this regular expression")
	jsonFile := flag.String("json", "", "write the results to this file as JSON")
	list := flag.Bool("list", false, "list the checks and exit")
	slow := flag.Duration("slow", 0, "also run the slow checks that take up to this long (15m: expiry of tokens; 90m: all)")
	all := flag.Bool("all", false, "do not skip what newer Kubernetes releases cannot pass (with -vocab k8s, against release 1.21)")
	parallel := flag.Int("parallel", 8, "checks in flight per server")
	servers := flag.Int("servers", 2, "servers running at a time")
	keep := flag.Bool("keep", false, "keep the work directory")
	verbose := flag.Bool("v", false, "print passed and skipped checks too")
	vocab := flag.String("vocab", cmp.Or(os.Getenv("CONFORMANCE_VOCAB"), Platform), "vocabulary: platform or k8s")
	flag.Parse()
	if vocabulary = *vocab; vocabulary != Platform && vocabulary != K8s {
		fatal("unknown vocabulary %q", vocabulary)
	}
	re, err := regexp.Compile(*pattern)
	if err != nil {
		fatal("-run: %v", err)
	}
	inOrder(registry)
	checks := slices.DeleteFunc(slices.Clone(registry), func(c *Check) bool {
		return !re.MatchString(c.ID) && !re.MatchString(c.Section) && !re.MatchString(c.config.Name)
	})
	rejectDuplicates(registry)
	if *list {
		for _, c := range checks {
			fmt.Printf("%-10s %-9s %-34s %s%s\n", c.ID, c.config.Name, c.Section, c.Says, note(c))
		}
		return
	}
	if os.Getenv("CONFORMANCE_CMD") == "" {
		fatal("set CONFORMANCE_CMD to the command that starts the server, with {dir}, {port} and {flags} (see README.md)")
	}
	work, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		fatal("%v", err)
	}
	r := &runner{fix: newFixtures(work), work: work, slow: *slow, all: *all || vocabulary == Platform, parallel: *parallel, verbose: *verbose}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-interrupted
		stopAll()
		os.Exit(130)
	}()
	began := time.Now()
	r.runAll(checks, *servers)
	failed := r.report(checks, time.Since(began))
	if *jsonFile != "" {
		b, _ := json.MarshalIndent(r.results, "", "  ")
		if err := os.WriteFile(*jsonFile, append(b, '\n'), 0o644); err != nil {
			fatal("%v", err)
		}
	}
	if *keep {
		fmt.Println("kept", work)
	} else {
		os.RemoveAll(work)
	}
	r.last()
	if failed > 0 {
		os.Exit(1)
	}
}

func fatal(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "conformance: "+format+"\n", args...)
	os.Exit(2)
}

// inOrder sorts the checks of each section by id; the sections keep their order.
func inOrder(checks []*Check) {
	section := map[string]int{}
	for _, c := range checks {
		if _, ok := section[c.Section]; !ok {
			section[c.Section] = len(section)
		}
	}
	slices.SortStableFunc(checks, func(a, b *Check) int {
		return cmp.Or(section[a.Section]-section[b.Section], cmp.Compare(a.ID, b.ID))
	})
}

func rejectDuplicates(checks []*Check) {
	seen := map[string]bool{}
	for _, c := range checks {
		if seen[c.ID] {
			fatal("two checks have the id %s", c.ID)
		}
		seen[c.ID] = true
	}
}

func note(c *Check) string {
	if c.only != "" {
		return " [platform only: " + c.only + "]"
	}
	return ""
}

type runner struct {
	fix      *Fixtures
	work     string
	slow     time.Duration
	all      bool // also checks that only release 1.21 can pass
	verbose  bool
	parallel int

	mu      sync.Mutex
	results []Result
}

// runAll runs the configurations in the order of their first check, a few at a time.
func (r *runner) runAll(checks []*Check, servers int) {
	var configs []*Config
	byConfig := map[*Config][]*Check{}
	for _, c := range checks {
		if byConfig[c.config] == nil {
			configs = append(configs, c.config)
		}
		byConfig[c.config] = append(byConfig[c.config], c)
	}
	// the longest first
	slices.SortStableFunc(configs, func(a, b *Config) int { return len(byConfig[b]) - len(byConfig[a]) })
	slots := make(chan struct{}, servers)
	var wg sync.WaitGroup
	for _, config := range configs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.runConfig(config, byConfig[config])
		})
	}
	wg.Wait()
}

func (r *runner) runConfig(config *Config, checks []*Check) {
	var ready []*Check
	for _, c := range checks {
		switch {
		case !r.all && config.PlatformOnly != "":
			r.add(c, "skipped", config.PlatformOnly, 0)
		case !r.all && c.only != "":
			r.add(c, "skipped", c.only, 0)
		case c.slow && r.slow < c.deadline:
			r.add(c, "skipped", fmt.Sprintf("takes up to %v; run with -slow %v", c.deadline, c.deadline), 0)
		default:
			ready = append(ready, c)
		}
	}
	if len(ready) == 0 {
		return
	}
	server, err := startServer(r.fix, config, r.work)
	defer server.stop()
	if err == nil && config.Before != nil {
		outcome, text := r.guard(&Check{ID: "start-" + config.Name, run: config.Before, deadline: time.Minute}, server)
		if outcome != "passed" {
			err = fmt.Errorf("preparing the started server: %s", text)
		}
	}
	if err == nil && config.Restart {
		server.stop()
		if err = server.start(); err != nil {
			err = fmt.Errorf("second start on the same data: %w", err)
		}
	}
	if err != nil {
		start := &Check{ID: "START-" + config.Name, Section: "Server start", Says: "the server starts with the flags of configuration " + config.Name, config: config}
		r.add(start, "failed", err.Error(), 0)
		for _, c := range ready {
			r.add(c, "skipped", "the server did not start", 0)
		}
		return
	}
	slots := make(chan struct{}, r.parallel)
	var wg sync.WaitGroup
	for _, c := range ready {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.run(c, server)
		})
	}
	wg.Wait()
}

func (r *runner) run(c *Check, s *Server) {
	began := time.Now()
	outcome, text := r.guard(c, s)
	r.add(c, outcome, text, time.Since(began).Seconds())
}

// guard runs a check in its own goroutine and gives up on it after its deadline.
func (r *runner) guard(c *Check, s *Server) (outcome, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), c.deadline)
	defer cancel()
	t := &T{Server: s, ctx: ctx, check: c}
	type end struct{ outcome, text string }
	done := make(chan end, 1)
	attempt := func(f func()) (e end) {
		e = end{"passed", ""}
		defer func() {
			switch p := recover().(type) {
			case nil:
			case failure:
				e = end{"failed", p.text}
			case skip:
				e = end{"skipped", p.text}
			default:
				e = end{"failed", fmt.Sprintf("panic in the check: %v\n%s", p, debug.Stack())}
			}
		}()
		f()
		return e
	}
	go func() {
		e := attempt(func() { c.run(t) })
		// clean up with time of its own
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		t.ctx = ctx
		for _, f := range slices.Backward(t.cleanups) {
			attempt(f)
		}
		done <- e
	}()
	select {
	case e := <-done:
		return e.outcome, e.text
	case <-time.After(c.deadline + 20*time.Second):
		return "failed", fmt.Sprintf("expected the check to end within %v, it did not; last exchange: %s", c.deadline, t.last)
	}
}

func (r *runner) add(c *Check, outcome, text string, seconds float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, Result{c.ID, c.Section, c.Says, c.config.Name, outcome, text, seconds})
	switch {
	case outcome == "failed":
		fmt.Printf("FAIL %s [%s: %s] %s\n", c.ID, c.Section, c.Says, oneLine(text))
	case r.verbose && text != "":
		fmt.Printf("%-7s %s [%s] %s\n", outcome, c.ID, c.Section, text)
	case r.verbose:
		fmt.Printf("%-7s %s [%s] %.1fs\n", outcome, c.ID, c.Section, seconds)
	}
}

// report prints the totals per section and returns the number of failures.
func (r *runner) report(checks []*Check, took time.Duration) (failed int) {
	order := map[string]int{}
	for i, c := range registry {
		order[c.ID] = i
	}
	slices.SortStableFunc(r.results, func(a, b Result) int { return order[a.ID] - order[b.ID] })
	type totals struct{ passed, failed, skipped int }
	var sections []string
	bySection := map[string]*totals{}
	for _, res := range r.results {
		s := bySection[res.Section]
		if s == nil {
			s = &totals{}
			bySection[res.Section] = s
			sections = append(sections, res.Section)
		}
		switch res.Outcome {
		case "passed":
			s.passed++
		case "failed":
			s.failed++
			failed++
		default:
			s.skipped++
		}
	}
	width := 0
	for _, s := range sections {
		width = max(width, len(s))
	}
	fmt.Printf("\n%-*s  passed  failed  skipped\n", width, "section")
	for _, name := range sections {
		s := bySection[name]
		fmt.Printf("%-*s  %6d  %6d  %7d\n", width, name, s.passed, s.failed, s.skipped)
	}
	fmt.Printf("%s, vocabulary %s, %d checks, logs in %s\n", took.Round(time.Second), vocabulary, len(checks), filepath.Base(r.work))
	return failed
}

func (r *runner) last() {
	count := map[string]int{}
	for _, res := range r.results {
		count[res.Outcome]++
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", count["passed"], count["failed"], count["skipped"])
}

// oneLine folds a failure text, so that each failing check is one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
