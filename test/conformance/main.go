// Command conformance is a ratchet: it runs the conformance suite against the
// all-in-one in both vocabularies, and at both emulated versions, and compares what passes with passing.txt, the
// checks that have passed before. One that fails again is an error; one that
// passes for the first time is printed, and added with -update.
//
// It decides nothing about the checks themselves: the suite is a program and a
// module of its own that shares no code with any server. A missing suite is an error.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

func main() {
	r := ratchet{}
	flag.StringVar(&r.suite, "suite", "test/conformance/suite", "folder of the conformance suite")
	flag.StringVar(&r.portico, "portico", "bin/portico", "the all-in-one to check")
	flag.StringVar(&r.list, "passing", "test/conformance/passing.txt", "the list of checks that pass")
	flag.StringVar(&r.results, "results", "", "compare the outcomes in this file, those of another suite, and run nothing")
	flag.StringVar(&r.pattern, "run", "", "run only the checks that match this regular expression")
	flag.BoolVar(&r.update, "update", false, "add newly passing checks to the list")
	apis := flag.String("apis", "platform,k8s,k8s@1.21", "the APIs to check: vocabularies, and the emulated version if it is not the default")
	flag.Parse()
	if err := r.run(strings.Split(*apis, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// ratchet is one run, as its flags say.
type ratchet struct {
	suite, portico, list, results, pattern string
	update                                 bool
}

func (r *ratchet) run(apis []string) error {
	passing, err := readList(r.list)
	if err != nil {
		return err
	}
	var outcomes map[string]string
	if r.results != "" {
		outcomes, err = r.read(passing)
	} else {
		outcomes, err = r.runSuite(apis)
	}
	if err != nil {
		return err
	}
	broken, fresh := compare(passing, outcomes)
	return r.report(passing, broken, fresh)
}

// read returns the outcomes in a file. Unless a pattern left out checks, each check of the
// list must have run.
func (r *ratchet) read(passing map[string]bool) (map[string]string, error) {
	outcomes, err := readOutcomes(r.results)
	if err != nil {
		return nil, err
	}
	for name := range passing {
		if _, ran := outcomes[name]; !ran && r.pattern == "" {
			outcomes[name] = "did not run"
		}
	}
	return outcomes, nil
}

// runSuite builds the suite, runs it for all APIs and returns the outcomes.
func (r *ratchet) runSuite(apis []string) (map[string]string, error) {
	if _, err := os.Stat(r.suite); err != nil {
		return nil, fmt.Errorf("the suite to run: %w", err)
	}
	work, err := os.MkdirTemp("", "ratchet-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "suite")
	if err := r.build(program); err != nil {
		return nil, err
	}
	return r.checkAll(program, work, apis)
}

// checkAll runs the suite for all APIs at the same time, because it mostly waits, and
// returns their outcomes together. What the suite prints is not mixed.
func (r *ratchet) checkAll(program, work string, apis []string) (map[string]string, error) {
	outcomes, mu, group := map[string]string{}, sync.Mutex{}, errgroup.Group{}
	for _, api := range apis {
		group.Go(func() error {
			var output bytes.Buffer
			of, err := r.check(program, api, filepath.Join(work, api+".json"), &output)
			mu.Lock()
			defer mu.Unlock()
			_, _ = os.Stdout.Write(output.Bytes())
			if err != nil {
				return fmt.Errorf("%s: %w", api, err)
			}
			maps.Copy(outcomes, of)
			return nil
		})
	}
	return outcomes, group.Wait()
}

func (r *ratchet) build(program string) error {
	build := exec.Command("go", "build", "-C", r.suite, "-o", program, ".")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the suite: %w: %s", err, out)
	}
	return nil
}

// check runs the suite for one API and returns the outcome of each check
// that ran, under its name in the list.
func (r *ratchet) check(program, api, results string, output io.Writer) (map[string]string, error) {
	portico, err := filepath.Abs(r.portico)
	if err != nil {
		return nil, err
	}
	vocabulary, emulated, other := strings.Cut(api, "@")
	if other {
		emulated = "--emulated-version=" + emulated
	}
	suite := exec.Command(program, "-vocab", vocabulary, "-json", results, "-run", r.pattern)
	const audit = "{dir}/audit.log"
	suite.Env = append(os.Environ(), "CONFORMANCE_AUDIT="+audit, fmt.Sprintf(
		"CONFORMANCE_CMD=exec '%s' --bind-address=127.0.0.1 --data-dir={dir} --secure-port={port} --vocabulary=%s --audit-log-path="+audit+" %s {flags}", portico, vocabulary, emulated))
	suite.Stdout, suite.Stderr = output, output
	// Failing checks are the list's business: only a run without results is an error.
	runError := suite.Run()
	ofAPI, err := readOutcomes(results)
	if err != nil {
		return nil, errors.Join(runError, err)
	}
	outcomes := map[string]string{}
	for id, outcome := range ofAPI {
		outcomes[api+" "+id] = outcome
	}
	return outcomes, nil
}

// readOutcomes returns the outcome of each check in the results of a suite.
func readOutcomes(path string) (map[string]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var checks []struct{ ID, Outcome string }
	if err := json.Unmarshal(content, &checks); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	outcomes := map[string]string{}
	for _, c := range checks {
		outcomes[c.ID] = c.Outcome
	}
	return outcomes, nil
}

// compare returns the listed checks that did not pass and the passing checks that
// are not listed. A check that the pattern left out is neither.
func compare(passing map[string]bool, outcomes map[string]string) (broken, fresh []string) {
	for name, outcome := range outcomes {
		switch {
		case passing[name] && outcome != "passed":
			broken = append(broken, name+" "+outcome)
		case !passing[name] && outcome == "passed":
			fresh = append(fresh, name)
		}
	}
	slices.Sort(broken)
	slices.Sort(fresh)
	return broken, fresh
}

func (r *ratchet) report(passing map[string]bool, broken, fresh []string) error {
	for _, name := range fresh {
		fmt.Println("passes for the first time:", name)
		passing[name] = true
	}
	switch {
	case len(fresh) == 0:
	case r.update:
		if err := writeList(r.list, passing); err != nil {
			return err
		}
	default:
		fmt.Printf("%d checks are new: -update adds them to %s (make conformance-update does)\n", len(fresh), r.list)
	}
	if len(broken) > 0 {
		return fmt.Errorf("%d checks of %s passed before and do not now:\n  %s", len(broken), r.list, strings.Join(broken, "\n  "))
	}
	return nil
}

// readList reads one check per line, "<api> <id>" or the names of another suite; lines that
// begin with # are comments.
func readList(path string) (map[string]bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]bool{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
			list[line] = true
		}
	}
	return list, lines.Err()
}

// writeList replaces the checks of a list, and keeps the comment that it begins with.
func writeList(path string, list map[string]bool) error {
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var content strings.Builder
	for line := range strings.Lines(string(before)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		content.WriteString(line)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		content.WriteString(name + "\n")
	}
	return os.WriteFile(path, []byte(content.String()), 0o644)
}
