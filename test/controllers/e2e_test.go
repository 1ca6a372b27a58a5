package controllers

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	procs = flag.Int("procs", 8, "`number` of processes of the end-to-end suite: its specs wait more than they compute")
	dry   = flag.Bool("dry-run", false, "only list the specs of the end-to-end suite")
)

// plan is the content of specs.yaml.
type plan struct {
	selection
	Features struct {
		selection
		// Gates are on in the second cluster.
		Gates []string `json:"gates"`
	} `json:"features"`
}

// selection is what one cluster runs: specs that match an expression of Focus and have the
// labels, if there are any, without those that match an expression of Skip.
type selection struct {
	Focus  []string `json:"focus"`
	Labels string   `json:"labels"`
	Skip   []struct {
		Reason string   `json:"reason"`
		Specs  []string `json:"specs"`
	} `json:"skip"`
}

// TestE2E runs the end-to-end suite of Kubernetes, those specs that need no containers: in a
// cluster with the default features, and in one that has more.
func TestE2E(t *testing.T) {
	skipUnlessAsked(t)
	p := readPlan(t)
	gates := strings.Join(p.Features.Gates, "=true,") + "=true"
	var checks []check
	t.Run("defaults", func(t *testing.T) {
		s := start(t, "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--controllers=*,tokencleaner,bootstrapsigner", "--service-cluster-ip-range=10.0.0.0/16,fd00:10::/108")
		s.startControllers(t)
		checks = s.runSelection(t, p.selection)
	})
	t.Run("features", func(t *testing.T) {
		s := start(t, "--feature-gates="+gates, "--runtime-config=api/all=true")
		// Workloads of scheduling/v1alpha2 have no Protobuf.
		s.startControllers(t, "--feature-gates="+gates, "--kube-api-content-type=application/json")
		checks = append(checks, s.runSelection(t, p.Features.selection)...)
	})
	report(t, checks)
}

func readPlan(t *testing.T) (p plan) {
	t.Helper()
	content, err := os.ReadFile("e2e/specs.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(content, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runSelection runs the specs of a selection, and returns their outcomes.
func (s *site) runSelection(t *testing.T, chosen selection) (checks []check) {
	t.Helper()
	s.startNodes(t)
	all := s.runSpecs(t, chosen)
	chosen.check(t, all)
	for _, spec := range all {
		if of, ran := spec.outcome(); ran {
			checks = append(checks, of)
		}
	}
	if len(checks) == 0 && *only == "" && !*dry {
		t.Error("no spec has run")
	}
	return checks
}

// check fails for expressions that match no spec.
func (s selection) check(t *testing.T, all []spec) {
	t.Helper()
	expressions := s.Focus
	for _, skip := range s.Skip {
		expressions = append(expressions, skip.Specs...)
	}
	for _, e := range expressions {
		pattern, found := regexp.MustCompile(e), false
		for _, spec := range all {
			found = found || pattern.MatchString(spec.name())
		}
		if !found {
			t.Errorf("specs.yaml: %q matches no spec", e)
		}
	}
}

// runSpecs runs the selected specs, and returns all specs.
func (s *site) runSpecs(t *testing.T, chosen selection) []spec {
	t.Helper()
	// A second attempt: pods of kwok are ready or finished at once, which some controllers and specs miss.
	args := []string{"--procs=" + strconv.Itoa(*procs), "--flake-attempts=2", "--no-color", "--timeout=4h", "--output-dir=" + s.dir, "--json-report=report.json", "--silence-skips", "--dry-run=" + strconv.FormatBool(*dry),
		"--label-filter=" + chosen.Labels}
	if *dry {
		args[0] = "--procs=1"
	}
	for _, skip := range chosen.Skip {
		for _, e := range skip.Specs {
			args = append(args, "--skip="+e)
		}
	}
	// Ginkgo runs what matches any of the expressions, so that they are combined here.
	focus := strings.Join(chosen.Focus, "|")
	if *only != "" {
		focus = *only
	}
	args = append(args, "--focus=("+focus+")", program(t, "controllers/e2e.test"), "--",
		"--kubeconfig="+s.kubeconfig, "--provider=skeleton", "--num-nodes="+strconv.Itoa(nodes), "--kubectl-path="+program(t, "controllers/kubectl"),
		"--dump-logs-on-failure=false", "--disable-log-dump")
	command := exec.CommandContext(t.Context(), program(t, "controllers/ginkgo"), args...)
	command.Dir = s.dir
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	failure := command.Run() // is that of any spec
	content, err := os.ReadFile(filepath.Join(s.dir, "report.json"))
	if err != nil {
		t.Fatal(failure, err)
	}
	var suites []struct {
		SpecialSuiteFailureReasons []string
		SpecReports                []spec
	}
	if err := json.Unmarshal(content, &suites); err != nil || len(suites) != 1 {
		t.Fatalf("%d suites, %v", len(suites), err)
	}
	if reasons := suites[0].SpecialSuiteFailureReasons; len(reasons) > 0 {
		t.Errorf("the suite: %q", reasons)
	}
	return suites[0].SpecReports
}

// spec is the part of Ginkgo's report on a spec that is read here.
type spec struct {
	ContainerHierarchyTexts           []string
	LeafNodeText, LeafNodeType, State string
	Failure                           struct{ Message string }
}

// name returns what expressions are matched with.
func (s spec) name() string {
	return strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
}

// outcome returns the outcome of a spec, and whether it was selected. A spec that has skipped
// itself says why.
func (s spec) outcome() (of check, ran bool) {
	of = check{ID: s.name(), Outcome: failed, Why: s.Failure.Message}
	switch s.State {
	case "passed":
		of.Outcome = passed
	case "skipped":
		of.Outcome = skipped
	}
	return of, s.LeafNodeType == "It" && s.State != "pending" && (s.State != "skipped" || s.Failure.Message != "")
}
