// Package thirdparty runs test suites of other projects, unmodified, against Portico in the place of
// kube-apiserver in envtest. Their projects need no Portico, and Portico needs none of them: the module only fixes
// their versions.
package thirdparty

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	// The packages whose tests run, and what these tests need.
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/gateway-api/apis/v1"
)

var (
	assets  = flag.String("assets", "", "folder with the links kube-apiserver and etcd that portico envtest has made")
	results = flag.String("results", "", "write the outcome of each check to this `file`")
	only    = flag.String("only", "", "run only the suites of packages that contain this text")
)

// check is the outcome of one check of a suite.
type check struct {
	ID      string
	Outcome string // passed, failed or skipped
	Why     string // the message of a check that has failed
}

const (
	controllerRuntime = "sigs.k8s.io/controller-runtime/pkg/"
	gatewayAPI        = "sigs.k8s.io/gateway-api/"
)

// specs are the packages of controller-runtime whose specs need an API server.
var specs = []string{"client", "handler", "controller", "controller/controllerutil", "webhook"}

// TestSuites runs the suites and writes their outcomes.
func TestSuites(t *testing.T) {
	if *assets == "" {
		t.Skip("-assets is not set; make test-thirdparty sets it")
	}
	t.Setenv("KUBEBUILDER_ASSETS", *assets)
	var all []check
	run := func(name string, suite func(*testing.T, string) []check) {
		if !strings.Contains(name, *only) {
			return
		}
		checks := suite(t, name)
		if len(checks) == 0 {
			t.Errorf("%s has no check", name)
		}
		all = append(all, checks...)
	}
	for _, name := range specs {
		run(controllerRuntime+name, runSpecs)
	}
	run(gatewayAPI+"pkg/test/cel", runTests)
	write(t, all)
}

// write writes the outcomes for deploy/conformance, which compares them with the list of those that pass.
func write(t *testing.T, all []check) {
	t.Helper()
	slices.SortStableFunc(all, func(a, b check) int { return cmp.Compare(a.ID, b.ID) })
	counts, seen := map[string]int{}, map[string]int{}
	for i, c := range all {
		if seen[c.ID]++; seen[c.ID] > 1 {
			all[i].ID = fmt.Sprintf("%s, again %d", c.ID, seen[c.ID])
		}
		if counts[c.Outcome]++; c.Outcome == "failed" {
			t.Logf("failed: %s\n%s", c.ID, c.Why)
		}
	}
	t.Logf("%d passed, %d failed, %d skipped", counts["passed"], counts["failed"], counts["skipped"])
	if len(all) == 0 {
		t.Fatal("no check has run")
	}
	content, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*results, content, 0o644); err != nil { //nolint:gosec // no secret
		t.Fatal(err)
	}
}

// compiled builds the tests of a package and returns a command that runs them in the folder of the package.
func compiled(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "suite.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-tags=experimental", "-o", program, name).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", name).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	command := exec.Command(program, args...)
	command.Dir = strings.TrimSpace(string(folder))
	return command
}

// spec is a part of a report of Ginkgo.
type spec struct {
	ContainerHierarchyTexts           []string
	LeafNodeText, LeafNodeType, State string
	Failure                           struct{ Message string }
}

// runSpecs runs a suite of Ginkgo.
func runSpecs(t *testing.T, name string) (all []check) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	out, err := compiled(t, name, "-ginkgo.json-report="+file).CombinedOutput()
	content, missing := os.ReadFile(file)
	if missing != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	var reports []struct{ SpecReports []spec }
	if err := json.Unmarshal(content, &reports); err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		for _, s := range r.SpecReports {
			if c, ran := s.outcome(name); ran {
				all = append(all, c)
			}
		}
	}
	return all
}

// outcome returns the outcome of a spec. What is done before and after all specs counts only if it failed.
func (s spec) outcome(name string) (c check, ran bool) {
	texts := append(append([]string{name}, s.ContainerHierarchyTexts...), strings.TrimSpace(s.LeafNodeText)) // a list has no spaces at ends of lines
	c = check{ID: strings.Join(texts, " "), Outcome: "failed", Why: s.Failure.Message}
	switch s.State {
	case "passed":
		c.Outcome = "passed"
	case "skipped", "pending":
		return c, false
	}
	if s.LeafNodeType != "It" {
		c.ID = name + " " + s.LeafNodeType
		return c, c.Outcome == "failed"
	}
	return c, true
}

// runTests runs tests of package testing with the custom types of the project in a control plane of their own.
func runTests(t *testing.T, name string) []check {
	t.Helper()
	command := compiled(t, name, "-test.v=test2json")
	control := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(command.Dir, "..", "..", "..", "config", "crd", "experimental")}, ErrorIfCRDPathMissing: true}
	if _, err := control.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	}()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, control.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := command.CombinedOutput()
	all := outcomes(t, name, out)
	if err != nil && !slices.ContainsFunc(all, func(c check) bool { return c.Outcome == "failed" }) {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return all
}

// outcomes reads the output of tests.
func outcomes(t *testing.T, name string, out []byte) (all []check) {
	t.Helper()
	convert := exec.Command("go", "tool", "test2json")
	convert.Stdin = bytes.NewReader(out)
	events, err := convert.Output()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(events))
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		outcome := map[string]string{"pass": "passed", "fail": "failed", "skip": "skipped"}[e.Action]
		switch {
		case e.Test == "":
		case e.Action == "output":
			said[e.Test] += e.Output
		case outcome != "":
			c := check{ID: name + " " + e.Test, Outcome: outcome}
			if outcome == "failed" {
				c.Why = said[e.Test]
			}
			all = append(all, c)
		}
	}
	return all
}

// TestOutcomes reads the outcomes of specs and tests.
func TestOutcomes(t *testing.T) {
	out := "=== RUN   TestA\n=== RUN   TestA/b\n    a_test.go:1: no\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n=== RUN   TestC\n--- PASS: TestC (0.00s)\nFAIL\n"
	want := map[string]string{"x TestA": "failed", "x TestA/b": "failed", "x TestC": "passed"}
	for _, c := range outcomes(t, "x", []byte(out)) {
		if want[c.ID] != c.Outcome {
			t.Errorf("%+v, want %q", c, want[c.ID])
		}
		delete(want, c.ID)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	for _, s := range []struct {
		state, kind string
		ran         bool
		outcome     string
	}{{"passed", "It", true, "passed"}, {"panicked", "It", true, "failed"}, {"pending", "It", false, "failed"}, {"passed", "BeforeSuite", false, "passed"}, {"failed", "BeforeSuite", true, "failed"}} {
		c, ran := (spec{LeafNodeText: "y ", LeafNodeType: s.kind, State: s.state}).outcome("x")
		if ran != s.ran || c.Outcome != s.outcome || s.kind == "It" && c.ID != "x y" {
			t.Errorf("%v: %v, %v", s, c, ran)
		}
	}
}
