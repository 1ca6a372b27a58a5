package batch

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showJobCompletions(o *cell.Object) any {
	succeeded, completions := o.Status.Get("succeeded").Int(), o.Spec.Get("completions")
	if completions.Exists() {
		return cell.Fraction(succeeded, completions.Int())
	}
	if parallel := o.Spec.Get("parallelism").Int(); parallel > 1 {
		return cell.Fraction(succeeded, 1) + " of " + cell.Count(int(parallel))
	}
	return cell.Fraction(succeeded, 1)
}

func showJobDuration(o *cell.Object) any {
	start, ok := cell.Timestamp(o.Status.Get("startTime"))
	if !ok {
		return ""
	}
	end, ok := jobEnd(o)
	if !ok {
		return start
	}
	return duration.HumanDuration(end.Sub(start))
}

func jobEnd(o *cell.Object) (time.Time, bool) {
	if end, ok := cell.Timestamp(o.Status.Get("completionTime")); ok {
		return end, true
	}
	if failed := cell.Condition(o.Status.Get("conditions"), "Failed"); failed.Get("status").Is("True") {
		return cell.Timestamp(failed.Get("lastTransitionTime"))
	}
	return time.Time{}, false
}

// showJobStatus returns the state of a Job.
func showJobStatus(o *cell.Object) any {
	is := func(kind string) bool {
		return cell.Condition(o.Status.Get("conditions"), kind).Get("status").Is("True")
	}
	switch {
	case is("Complete"):
		return "Complete"
	case is("Failed"):
		return "Failed"
	case o.Metadata.Get("deletionTimestamp").Exists():
		return "Terminating"
	}
	for _, kind := range []string{"Suspended", "FailureTarget", "SuccessCriteriaMet"} {
		if is(kind) {
			return kind
		}
	}
	return "Running"
}
