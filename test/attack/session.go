package attack

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits are the bounds that the suite has to keep during attacks.
type Limits struct {
	// Memory is the maximum resident memory of all processes together, in bytes.
	Memory int64
	// Slowest is the maximum latency of the administrator's requests.
	Slowest time.Duration
}

// emergency is the memory of a process, in multiples of the limit, at which it is killed to
// protect the machine.
const emergency = 3

// Session runs trials against one target, and monitors the target meanwhile.
type Session struct {
	target  *Target
	limits  Limits
	probe   *probe
	cancel  context.CancelFunc
	guards  sync.WaitGroup
	mu      sync.Mutex
	killed  bool
	held    int64 // maximum memory of all processes at one time, in bytes
	results []Outcome
}

// Start starts a session: the probe and the memory guard run until Close.
func Start(ctx context.Context, target *Target, limits Limits) (*Session, error) {
	probe, err := newProbe(ctx, target)
	if err != nil {
		return nil, err
	}
	target.tally.issued(target.Admin.Token)
	ctx, cancel := context.WithCancel(ctx)
	s := &Session{target: target, limits: limits, probe: probe, cancel: cancel}
	s.guards.Go(func() { probe.run(ctx) })
	s.guards.Go(func() { s.guard(ctx) })
	return s, nil
}

// Try runs one trial.
func (s *Session) Try(ctx context.Context, trial Trial) Outcome {
	s.probe.during(trial)
	o := attempt(ctx, s.target, trial)
	s.probe.during(Trial{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Err != nil && s.killed {
		o.Err = fmt.Errorf("%w (the target was killed because it used too much memory)", o.Err)
	}
	s.results = append(s.results, o)
	return o
}

// guard samples the memory of the processes, and kills those that endanger the machine.
func (s *Session) guard(ctx context.Context) {
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		var held int64
		for _, p := range s.target.Processes {
			resident := p.Resident()
			held += resident
			if resident > emergency*s.limits.Memory {
				s.mu.Lock()
				s.killed = true
				s.mu.Unlock()
				_ = p.kill()
			}
		}
		s.mu.Lock()
		s.held = max(s.held, held)
		s.mu.Unlock()
	}
}

// Close ends the session and returns its report.
func (s *Session) Close() *Report {
	s.cancel()
	s.guards.Wait()
	r := &Report{Limits: s.limits, Outcomes: s.results, Held: s.held, Memory: map[string]int64{}}
	for _, p := range s.target.Processes {
		r.Memory[p.Name] = p.HighWater()
		r.Panics = append(r.Panics, p.Panics()...)
		if content, err := os.ReadFile(p.Log); err == nil && s.target.tally.leaked(string(content)) {
			r.Leaks = append(r.Leaks, p.Name)
		}
	}
	r.ServerErrors, r.FirstErrors = s.target.tally.read()
	r.Reads, r.Writes, r.ProbeErrors = s.probe.figures()
	return r
}

// Report is the result of a session.
type Report struct {
	Limits   Limits
	Outcomes []Outcome
	// Held is the maximum memory of all processes at one time in bytes, sampled every
	// 50 ms.
	Held int64
	// Memory is the high-water mark of each process in bytes, which are of different times.
	Memory map[string]int64
	// ServerErrors counts responses of 500 and above that no trial provoked.
	ServerErrors int
	FirstErrors  []string
	Panics       []string
	// Leaks are the names of processes whose logs contain a token.
	Leaks []string
	// Reads and Writes are the administrator's.
	Reads, Writes Figures
	ProbeErrors   []string
}

// Figures summarize the administrator's requests of one kind.
type Figures struct {
	Count   int
	Slowest time.Duration
	// Trial is the name of the trial during which the slowest began.
	Trial string
}

// Faults returns the violated bounds and other faults, except failed trials.
func (r *Report) Faults() (faults []string) {
	if r.Held > r.Limits.Memory {
		faults = append(faults, fmt.Sprintf("the processes held up to %d MiB, more than %d", r.Held>>20, r.Limits.Memory>>20))
	}
	for name, f := range map[string]Figures{"read": r.Reads, "write": r.Writes} {
		if f.Slowest > r.Limits.Slowest {
			faults = append(faults, fmt.Sprintf("the administrator's slowest %s took %v, during %s, more than %v", name, f.Slowest, f.Trial, r.Limits.Slowest))
		}
		if f.Count == 0 && !r.disrupted() {
			faults = append(faults, "the administrator's probe did not "+name)
		}
	}
	if r.ServerErrors > 0 {
		faults = append(faults, fmt.Sprintf("%d unexpected server errors: %s", r.ServerErrors, strings.Join(r.FirstErrors, "; ")))
	}
	for _, name := range r.Leaks {
		faults = append(faults, "the log of "+name+" contains a token")
	}
	for _, line := range r.Panics {
		faults = append(faults, "in a log: "+line)
	}
	for _, line := range r.ProbeErrors {
		faults = append(faults, "the administrator's probe: "+line)
	}
	return faults
}

// disrupted reports whether only disruptive trials ran, during which the probe is ignored.
func (r *Report) disrupted() bool {
	return len(r.Outcomes) > 0 && !slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return !o.Trial.Disruptive })
}

// String returns the report as text.
func (r *Report) String() string {
	var b strings.Builder
	for _, o := range r.Outcomes {
		word := "held"
		if o.Err != nil {
			word = "FAILED: " + o.Err.Error()
		}
		fmt.Fprintf(&b, "%-28s %-4s %7.2fs %+6d MiB  %s\n", o.Trial.Name, o.Trial.Finding, o.Took.Seconds(), o.Growth>>20, word)
	}
	for name, bytes := range r.Memory {
		fmt.Fprintf(&b, "%-28s high-water %d MiB\n", name, bytes>>20)
	}
	fmt.Fprintf(&b, "%-28s at most %d MiB at one moment\n", "all processes", r.Held>>20)
	fmt.Fprintf(&b, "administrator: %d reads, slowest %v during %s; %d writes, slowest %v during %s\n",
		r.Reads.Count, r.Reads.Slowest.Round(time.Millisecond), r.Reads.Trial,
		r.Writes.Count, r.Writes.Slowest.Round(time.Millisecond), r.Writes.Trial)
	fmt.Fprintf(&b, "unexpected server errors: %d; panics: %d\n", r.ServerErrors, len(r.Panics))
	for _, fault := range r.Faults() {
		fmt.Fprintln(&b, "FAULT:", fault)
	}
	return b.String()
}
