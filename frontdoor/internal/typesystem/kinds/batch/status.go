package batch

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Types of conditions of Jobs.
const (
	complete      = "Complete"
	failed        = "Failed"
	failureTarget = "FailureTarget"
	criteriaMet   = "SuccessCriteriaMet"
	suspended     = "Suspended"
)

// report is a new status of a Job, as its controller reports it. Only what changes is checked
// against the rest, so that a status from before these rules does not block others.
type report struct {
	*rules.Check
	status, old, spec map[string]any
	at                *field.Path
}

// jobReport checks the status of a Job.
func jobReport(c *rules.Check, m, old map[string]any, at *field.Path) {
	r := report{c, m, old, rules.Object(c.Root, "spec"), at}
	r.checkUncounted()
	r.checkConditions()
	r.checkTransitions()
	r.checkTimes()
	r.checkCounters()
	r.checkIndexes()
}

// is reports whether a status has a condition with a state.
func is(status map[string]any, kind, state string) bool {
	for _, condition := range rules.Objects(status, "conditions") {
		if rules.Text(condition, "type") == kind {
			return rules.Text(condition, "status") == state
		}
	}
	return false
}

func (r report) has(kind string) bool { return is(r.status, kind, "True") }

func (r report) had(kind string) bool { return is(r.old, kind, "True") }

// turned reports whether one of some conditions became true or false.
func (r report) turned(kinds ...string) bool {
	for _, kind := range kinds {
		if r.has(kind) != r.had(kind) {
			return true
		}
	}
	return false
}

// changed reports whether one of some fields has another value.
func (r report) changed(names ...string) bool {
	for _, name := range names {
		if before, now := r.old[name], r.status[name]; (before == nil) != (now == nil) || !rules.Same(now, before) {
			return true
		}
	}
	return false
}

func (r report) finished() bool { return r.has(complete) || r.has(failed) }

// ended reports whether the Job has finished or is no longer finished.
func (r report) ended() bool { return r.finished() != (r.had(complete) || r.had(failed)) }

func (r report) invalid(name, why string) { r.Invalid(r.at.Field(name), r.status[name], why) }

// checkUncounted checks the uids of terminated pods.
func (r report) checkUncounted() {
	const name = "uncountedTerminatedPods"
	uncounted, seen := rules.Object(r.status, name), map[string]bool{}
	for _, list := range [...]string{"succeeded", "failed"} {
		for i, uid := range rules.Texts(uncounted, list) {
			at := r.at.Field(name).Field(list).Item(i)
			switch {
			case uid == "":
				r.Invalid(at, uid, "must not be empty")
			case seen[uid]:
				r.Duplicate(at, uid)
			}
			seen[uid] = true
		}
	}
	if r.finished() && len(seen) > 0 && (r.ended() || r.changed(name)) {
		r.invalid(name, "must be empty for finished job")
	}
}

// checkConditions checks that the conditions fit each other.
func (r report) checkConditions() {
	for _, c := range [...]struct {
		wrong bool
		why   string
	}{
		{r.turned(complete, failed) && r.has(complete) && r.has(failed), "cannot set Complete=True and Failed=true conditions"},
		{r.turned(complete, failureTarget) && r.has(complete) && r.has(failureTarget), "cannot set Complete=True and FailureTarget=true conditions"},
		{(r.turned(failed) || r.changed("failedIndexes")) && r.has(failed) && !r.has(failureTarget), "cannot set Failed=True condition without the FailureTarget=true condition"},
		{r.turned(complete, criteriaMet) && r.has(complete) && !r.has(criteriaMet), "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"},
		{r.has(criteriaMet) && r.has(failed), "cannot set SuccessCriteriaMet=True and Failed=true conditions"},
		{r.has(criteriaMet) && r.has(failureTarget), "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"},
		{r.spec["successPolicy"] != nil && !r.has(criteriaMet) && r.has(complete), "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"},
	} {
		if c.wrong {
			r.InvalidWhole(r.at.Field("conditions"), c.why)
		}
	}
}

// checkTransitions checks that a Job that has ended stays so.
func (r report) checkTransitions() {
	at := r.at.Field("conditions")
	for _, kind := range [...]string{failed, complete, failureTarget} {
		if r.had(kind) && !r.has(kind) {
			r.InvalidWhole(at, "cannot disable the terminal "+kind+"=True condition")
		}
	}
	if r.had(criteriaMet) && !r.has(criteriaMet) {
		r.InvalidWhole(at, "cannot disable the SuccessCriteriaMet=True condition")
	}
	if r.had(complete) && !r.had(criteriaMet) && r.has(criteriaMet) {
		r.InvalidWhole(at, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
	}
}

// checkTimes checks when a Job started and completed.
func (r report) checkTimes() {
	const started, ended = "startTime", "completionTime"
	start, end := rules.Text(r.status, started), rules.Text(r.status, ended)
	if r.turned(complete) || r.changed(ended) {
		if end != "" && !r.has(complete) {
			r.invalid(ended, "cannot set completionTime when there is no Complete=True condition")
		}
		if end == "" && r.has(complete) {
			r.Required(r.at.Field(ended), "completionTime is required for Complete jobs")
		}
	}
	if start != "" && end != "" && end < start && r.changed(started, ended) { // in UTC, to the second
		r.invalid(ended, "must be equal to or after `startTime`")
	}
	if before := rules.Text(r.old, ended); end != "" && before != "" && end != before {
		r.invalid(ended, "field is immutable")
	}
	completions, bounded := rules.Whole(r.spec["completions"])
	nothing := r.spec["suspend"] == true && bounded && completions == 0
	if start == "" && r.finished() && !nothing && (r.ended() || r.changed(started)) {
		r.Required(r.at.Field(started), "startTime is required for finished job")
	}
	resumes := is(r.old, suspended, "True") && is(r.status, suspended, "False")
	if rules.Text(r.old, started) != "" && r.changed(started) && r.spec["suspend"] != true && !resumes {
		r.invalid(started, "field is immutable for unsuspended job once set")
	}
}

// checkCounters checks the numbers of pods.
func (r report) checkCounters() {
	now := func(name string) int64 { return rules.Number(r.status, name) }
	for _, name := range [...]string{"active", "terminating"} {
		if now(name) > 0 && r.finished() && (r.ended() || r.changed(name)) {
			r.invalid(name, name+">0 is invalid for finished job")
		}
	}
	if r.status["ready"] != nil && now("ready") > now("active") && r.changed("ready", "active") {
		r.invalid("ready", "cannot set more ready pods than active")
	}
	shrinks := r.spec["completionMode"] == "Indexed" && rules.Same(r.spec["completions"], r.spec["parallelism"])
	for _, name := range [...]string{"failed", "succeeded"} {
		if now(name) < rules.Number(r.old, name) && (name == "failed" || !shrinks) {
			r.invalid(name, "cannot decrease the "+name+" counter")
		}
	}
}

// checkIndexes checks the lists of indexes.
func (r report) checkIndexes() {
	const completed, failed = "completedIndexes", "failedIndexes"
	done, lost := rules.Text(r.status, completed), rules.Text(r.status, failed)
	completions, bounded := rules.Whole(r.spec["completions"])
	if r.changed(completed) {
		if _, err := countIndexes(done, completions); err != nil && bounded {
			r.invalid(completed, "error parsing completedIndexes: "+err.Error())
		}
		if done != "" && r.spec["completionMode"] != "Indexed" {
			r.invalid(completed, "cannot set non-empty completedIndexes when non-indexed completion mode")
		}
	}
	limited := r.spec["backoffLimitPerIndex"] != nil
	if r.changed(failed) {
		if _, err := countIndexes(lost, completions); err != nil && bounded && limited {
			r.invalid(failed, "error parsing failedIndexes: "+err.Error())
		}
		if !limited && r.status[failed] != nil {
			r.invalid(failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
		}
	}
	if both, found := common(done, lost, completions); found && bounded && r.changed(completed, failed) {
		r.invalid(failed, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", both))
	}
}

// common returns the first index that two increasing lists share. Intervals that are not valid
// are skipped: they have errors of their own.
func common(a, b string, completions int64) (index int64, found bool) {
	first, second := intervals(a, completions), intervals(b, completions)
	for len(first) > 0 && len(second) > 0 {
		x, y := first[0], second[0]
		if x[0] <= y[1] && y[0] <= x[1] {
			return max(x[0], y[0]), true
		}
		if x[0] <= y[0] {
			first = first[1:]
		} else {
			second = second[1:]
		}
	}
	return 0, false
}

// intervals returns the valid intervals of a list.
func intervals(list string, completions int64) (found [][2]int64) {
	for part := range strings.SplitSeq(list, ",") {
		if first, last, err := interval(part, completions); err == nil {
			found = append(found, [2]int64{first, last})
		}
	}
	return found
}
