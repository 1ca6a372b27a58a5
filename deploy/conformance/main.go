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
	flag.StringVar(&r.suite, "suite", "deploy/conformance/suite", "folder of the conformance suite")
	flag.StringVar(&r.portico, "portico", "bin/portico", "the all-in-one to check")
	flag.StringVar(&r.list, "passing", "deploy/conformance/passing.txt", "the list of checks that pass")
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
	suite, portico, list, pattern string
	update                        bool
}

func (r *ratchet) run(apis []string) error {
	if _, err := os.Stat(r.suite); err != nil {
		return fmt.Errorf("the suite to run: %w", err)
	}
	passing, err := readList(r.list)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "ratchet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "suite")
	if err := r.build(program); err != nil {
		return err
	}
	outcomes, err := r.checkAll(program, work, apis)
	if err != nil {
		return err
	}
	broken, fresh := compare(passing, outcomes)
	return r.report(passing, broken, fresh)
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
	content, err := os.ReadFile(results)
	if err != nil {
		return nil, errors.Join(runError, err)
	}
	var checks []struct{ ID, Outcome string }
	if err := json.Unmarshal(content, &checks); err != nil {
		return nil, err
	}
	outcomes := map[string]string{}
	for _, c := range checks {
		outcomes[api+" "+c.ID] = c.Outcome
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
		fmt.Printf("%d checks are new: make conformance-update adds them to %s\n", len(fresh), r.list)
	}
	if len(broken) > 0 {
		return fmt.Errorf("%d checks of %s passed before and do not now:\n  %s", len(broken), r.list, strings.Join(broken, "\n  "))
	}
	return nil
}

// readList reads one check per line, "<api> <id>"; # begins a comment.
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
		if line, _, _ := strings.Cut(lines.Text(), "#"); strings.TrimSpace(line) != "" {
			list[strings.TrimSpace(line)] = true
		}
	}
	return list, lines.Err()
}

func writeList(path string, list map[string]bool) error {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	content := "# The conformance checks that pass, per API; make conformance-update adds to it.\n" + strings.Join(names, "\n") + "\n"
	return os.WriteFile(path, []byte(content), 0o644)
}
