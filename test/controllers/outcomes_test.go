package controllers

import (
	"slices"
	"testing"
)

// TestOutcomes reads the log of functions of kubectl, and reports of specs.
func TestOutcomes(t *testing.T) {
	log := "\n+++ Running case: test-cmd.record_command_canary \n+++ exit code: 127\n" +
		"\n+++ Running case: test-cmd.run_wait_tests \nwaiting\n\x1b[m+++ exit code: 0\n" +
		"\n+++ Running case: test-cmd.run_rc_tests \nFAIL!\n+++ exit code: 1\n+++ error: 1\n" +
		"\n+++ Running case: test-cmd.run_rs_tests \nkilled"
	want := []check{{"run_wait_tests", passed, ""}, {"run_rc_tests", failed, "FAIL!"}}
	if got := outcomes(log); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	of := func(state, message string) spec {
		s := spec{ContainerHierarchyTexts: []string{"[sig-apps] Job"}, LeafNodeText: "should end", LeafNodeType: "It", State: state}
		s.Failure.Message = message
		return s
	}
	for state, want := range map[string]string{"passed": passed, "failed": failed, "panicked": failed, "timedout": failed, "skipped": skipped} {
		if got, ran := of(state, "why").outcome(); !ran || got != (check{"[sig-apps] Job should end", want, "why"}) {
			t.Errorf("%s: %q, %v", state, got, ran)
		}
	}
	for _, state := range []string{"skipped", "pending"} { // by an expression, or by the suite
		if _, ran := of(state, "").outcome(); ran {
			t.Errorf("%s: ran", state)
		}
	}
	hook := of("failed", "why")
	hook.LeafNodeType = "ReportAfterSuite"
	if _, ran := hook.outcome(); ran {
		t.Error("a hook is a spec")
	}
}
