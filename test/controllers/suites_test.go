package controllers

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"
)

// Flags of the suites of Kubernetes.
var (
	results = flag.String("results", "", "run the suite, and write the outcome of each check to this `file`")
	only    = flag.String("only", "", "run only some of the suite: an expression for the names of specs in the place of the focus of specs.yaml, or names of functions for kubectl without run_ and _tests")
)

// check is the outcome of one check of a suite.
type check struct {
	ID      string
	Outcome string // passed, failed or skipped
	Why     string // the message of a check that has failed or was skipped
}

const passed, failed, skipped = "passed", "failed", "skipped"

// skipUnlessAsked skips the test of a suite unless it has a file for its results.
func skipUnlessAsked(t *testing.T) {
	t.Helper()
	if *results == "" {
		t.Skip("-results is not set; the Makefile has targets for the suites of Kubernetes")
	}
}

// report writes the outcomes of a suite to its file, for test/conformance to compare them
// with the list of those that pass, and logs what has not passed.
func report(t *testing.T, checks []check) {
	t.Helper()
	slices.SortFunc(checks, func(a, b check) int { return cmp.Compare(a.ID, b.ID) })
	counts := map[string]int{}
	for i, c := range checks {
		counts[c.Outcome]++
		if c.Outcome != passed {
			t.Logf("%s: %s\n%s", c.Outcome, c.ID, c.Why)
		}
		if i > 0 && checks[i-1].ID == c.ID {
			t.Errorf("two checks have the name %s", c.ID)
		}
	}
	t.Logf("%d passed, %d failed, %d skipped", counts[passed], counts[failed], counts[skipped])
	if len(checks) == 0 {
		t.Fatal("no check has run")
	}
	content, err := json.MarshalIndent(checks, "", "\t")
	if err == nil {
		err = os.WriteFile(*results, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
