package batch

import (
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// TestJobReport: a status must fit itself and the Job, as far as it changes.
func TestJobReport(t *testing.T) {
	const started, ended = `startTime: "2021-04-08T01:00:00Z"`, `completionTime: "2021-04-08T02:00:00Z"`
	const succeeded = `conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]`
	const lost = `conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True"}]`
	const indexed = `{completionMode: Indexed, completions: 5, parallelism: 5, backoffLimitPerIndex: 1}`
	for name, c := range map[string]struct {
		spec, old, status string
		want              []string // parts of the errors
	}{
		"completed":            {`{completions: 1}`, `{` + started + `, active: 1}`, `{` + started + `, ` + ended + `, ` + succeeded + `}`, nil},
		"failed":               {`{completions: 1}`, `{` + started + `}`, `{` + started + `, ` + lost + `}`, nil},
		"resumed":              {`{}`, `{` + started + `, conditions: [{type: Suspended, status: "True"}]}`, `{conditions: [{type: Suspended, status: "False"}]}`, nil},
		"old mistakes":         {`{}`, `{` + ended + `, ready: 2, completedIndexes: x}`, `{` + ended + `, ready: 2, completedIndexes: x, failed: 1}`, nil},
		"nothing to do":        {`{suspend: true, completions: 0}`, `{}`, `{` + ended + `, ` + succeeded + `}`, nil},
		"time":                 {`{}`, `{}`, `{` + ended + `}`, []string{"status.completionTime: Invalid value: \"2021-04-08T02:00:00Z\": cannot set completionTime when there is no Complete=True condition"}},
		"no times":             {`{}`, `{}`, `{` + succeeded + `}`, []string{"status.completionTime: Required value: completionTime is required", "status.startTime: Required value: startTime is required"}},
		"backwards":            {`{}`, `{}`, `{startTime: "2022-01-01T00:00:00Z", ` + ended + `, ` + succeeded + `}`, []string{"must be equal to or after `startTime`"}},
		"other end":            {`{}`, `{` + started + `, ` + ended + `, ` + succeeded + `}`, `{` + started + `, completionTime: "2021-04-08T03:00:00Z", ` + succeeded + `}`, []string{"status.completionTime: Invalid value: \"2021-04-08T03:00:00Z\": field is immutable"}},
		"other start":          {`{}`, `{` + started + `}`, `{startTime: "2021-04-08T01:00:01Z"}`, []string{"field is immutable for unsuspended job once set"}},
		"both":                 {`{}`, `{}`, `{` + started + `, ` + ended + `, conditions: [{type: Complete, status: "True"}, {type: Failed, status: "True"}]}`, []string{"cannot set Complete=True and Failed=true", "without the SuccessCriteriaMet=true", "without the FailureTarget=true"}},
		"criteria and failure": {`{}`, `{}`, `{conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: FailureTarget, status: "True"}]}`, []string{"status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"}},
		"revived":              {`{}`, `{` + started + `, ` + ended + `, ` + succeeded + `}`, `{` + started + `, conditions: [{type: SuccessCriteriaMet, status: "True"}]}`, []string{"cannot disable the terminal Complete=True condition"}},
		"too late":             {`{}`, `{` + started + `, ` + ended + `, conditions: [{type: Complete, status: "True"}]}`, `{` + started + `, ` + ended + `, ` + succeeded + `}`, []string{"cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"}},
		"still active":         {`{}`, `{}`, `{` + started + `, ` + lost + `, active: 1, terminating: 2}`, []string{"status.active: Invalid value: 1: active>0 is invalid for finished job", "status.terminating: Invalid value: 2: terminating>0"}},
		"ready":                {`{}`, `{}`, `{ready: 1}`, []string{"status.ready: Invalid value: 1: cannot set more ready pods than active"}},
		"fewer":                {`{}`, `{failed: 2, succeeded: 2}`, `{failed: 1, succeeded: 1}`, []string{"cannot decrease the failed counter", "cannot decrease the succeeded counter"}},
		"scaled down":          {indexed, `{succeeded: 2}`, `{succeeded: 1}`, nil},
		"uncounted":            {`{}`, `{}`, `{uncountedTerminatedPods: {succeeded: [a, ""], failed: [a]}}`, []string{"failed[0]: Duplicate value: \"a\"", "succeeded[1]: Invalid value: \"\": must not be empty"}},
		"uncounted at the end": {`{}`, `{}`, `{` + started + `, ` + lost + `, uncountedTerminatedPods: {succeeded: [a]}}`, []string{"must be empty for finished job"}},
		"indexes":              {indexed, `{}`, `{completedIndexes: "0,3-4", failedIndexes: "1-2"}`, nil},
		"shared index":         {indexed, `{}`, `{completedIndexes: "0,3-4", failedIndexes: "1,4"}`, []string{"failedIndexes and completedIndexes overlap at index: 4"}},
		"no indexes":           {indexed, `{}`, `{completedIndexes: "a", failedIndexes: "5"}`, []string{"error parsing completedIndexes: cannot convert", "error parsing failedIndexes: too large index"}},
		"not indexed":          {`{completions: 1}`, `{}`, `{completedIndexes: "0", failedIndexes: ""}`, []string{"cannot set non-empty completedIndexes when non-indexed", "cannot set non-null failedIndexes when backoffLimitPerIndex is null"}},
	} {
		check := &rules.Check{Root: map[string]any{"spec": parse(t, c.spec)}}
		jobReport(check, parse(t, c.status), parse(t, c.old), &field.Path{Name: "status"})
		var got []string
		for _, cause := range check.Causes() {
			got = append(got, cause.Field+": "+cause.Message)
		}
		for _, want := range c.want {
			if !slices.ContainsFunc(got, func(text string) bool { return strings.Contains(text, want) }) {
				t.Errorf("%s: no %q in %q", name, want, got)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
