// Command envtest measures control planes inside tests, side by side: Portico in the test's
// process, Portico in the place of envtest's programs, and envtest with those of Kubernetes.
// Of each it measures the start and the suite of the sample operator, in rounds that
// alternate between them, and prints the medians as a Markdown table.
//
// docs/testing.md has a report.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/portico-platform/portico/test/bench/internal/process"
)

// side is one of what is compared.
type side struct {
	name string
	// inProcess is set if the control plane is part of the test's process; otherwise assets
	// is the folder KUBEBUILDER_ASSETS.
	inProcess bool
	assets    string
	suite     string // the suite of the operator, as a program
	results   map[string][]float64
}

// What is measured, in seconds.
const (
	firstStart  = "start, the first in a process"
	secondStart = "start, the second in a process"
	startCPU    = "CPU of a process that starts it twice"
	suiteTime   = "suite of 104 tests"
	suiteCPU    = "CPU of the suite, with its control plane"
)

var measures = []string{firstStart, secondStart, startCPU, suiteTime, suiteCPU}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "envtest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	program := flag.String("portico", "bin/portico", "the `program` portico")
	peer := flag.String("peer", "bin/peer", "`folder` with apiserver and etcd of Kubernetes, as make bench-peer builds them")
	kubectl := flag.String("kubectl", "", "the `program` kubectl; suites that do not run it need none")
	rounds := flag.Int("rounds", 5, "`number` of measurements of each")
	measured := flag.String(startFlag, "", "start control planes, and print the seconds: in-process or assets")
	flag.Parse()
	if *measured != "" {
		return printStarts(ctx, *measured == inProcess)
	}
	work, err := os.MkdirTemp("", "portico-envtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	sides, err := prepare(ctx, work, *program, *peer, *kubectl)
	if err != nil {
		return err
	}
	began, busy, own := time.Now(), process.Busy(), time.Duration(0)
	for round := range *rounds {
		for _, s := range sides {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, *rounds, s.name)
			used, err := s.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			own += used
		}
	}
	others := max(0, process.Busy()-busy-own).Seconds() / time.Since(began).Seconds()
	report(os.Stdout, sides)
	fmt.Printf("\nMedians of %d rounds, on %d cores, of which other processes used %.1f meanwhile.\n", *rounds, runtime.NumCPU(), others)
	return nil
}

// prepare returns what is compared, with the folders of the programs and the suites.
func prepare(ctx context.Context, work, program, peer, kubectl string) ([]*side, error) {
	suites, err := buildSuites(ctx, work)
	if err != nil {
		return nil, err
	}
	shim := filepath.Join(work, "shim")
	if out, err := exec.CommandContext(ctx, program, "envtest", shim).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s envtest: %w\n%s", program, err, out)
	}
	sides := []*side{
		{name: "portico.Environment", inProcess: true, suite: suites.inProcess},
		{name: "envtest with `portico envtest`", assets: shim, suite: suites.unchanged},
	}
	assets := filepath.Join(work, "kubernetes")
	if err := link(assets, map[string]string{"kube-apiserver": filepath.Join(peer, "apiserver"), "etcd": filepath.Join(peer, "etcd"), "kubectl": kubectl}); err != nil {
		fmt.Fprintf(os.Stderr, "skipped: envtest with the programs of Kubernetes: %v (advice: make bench-peer builds them; -peer names their folder)\n", err)
		return sides, nil
	}
	return append(sides, &side{name: "envtest with Kubernetes 1.36", assets: assets, suite: suites.unchanged}), nil
}

// link makes a folder with links of these names to programs, which must exist. Empty ones are
// left out.
func link(folder string, programs map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, program := range programs {
		if program == "" {
			continue
		}
		program, err := filepath.Abs(program)
		if err != nil {
			return err
		}
		if _, err := os.Stat(program); err != nil {
			return err
		}
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// measure measures once, and returns the CPU time that it took.
func (s *side) measure(ctx context.Context) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	mode := withAssets
	if s.inProcess {
		mode = inProcess
	}
	started, out, err := s.execute(ctx, "", self, "-"+startFlag, mode)
	if err != nil {
		return 0, err
	}
	var first, second float64
	if _, err := fmt.Sscan(out, &first, &second); err != nil {
		return 0, fmt.Errorf("%w: %q", err, out)
	}
	began := time.Now()
	tested, _, err := s.execute(ctx, suiteFolder, s.suite, "-ginkgo.succinct", "-ginkgo.no-color")
	if err != nil {
		return 0, err
	}
	elapsed := time.Since(began)
	if s.results == nil {
		s.results = map[string][]float64{}
	}
	for measure, value := range map[string]float64{firstStart: first, secondStart: second, startCPU: started.Seconds(),
		suiteTime: elapsed.Seconds(), suiteCPU: tested.Seconds()} {
		s.results[measure] = append(s.results[measure], value)
	}
	return started + tested, nil
}

// execute runs a program in a folder, and returns the CPU time of it and of what it started and
// waited for.
func (s *side) execute(ctx context.Context, folder, program string, args ...string) (time.Duration, string, error) {
	var out, diagnostics bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = folder, append(os.Environ(), "KUBEBUILDER_ASSETS="+s.assets)
	c.Stdout, c.Stderr = &out, &diagnostics
	if err := c.Run(); err != nil {
		return 0, "", fmt.Errorf("%s: %w\n%s%s", filepath.Base(program), err, &out, &diagnostics)
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), out.String(), nil
}
