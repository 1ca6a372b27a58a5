// Package batch holds the functions of Jobs, CronJobs and their job templates. It serves
// "Resources and their fields" of the specification.
package batch

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"failureCause":            failureCause,
		"failureRules":            failureRules,
		"scheduleZone":            scheduleZone,
		"successOfIndexes":        successOfIndexes,
		"backoffOfIndexes":        backoffOfIndexes,
		"replacementFitsFailures": replacementFitsFailures,
		"cronJobName":             cronJobName,
		"hostnamesOfPods":         hostnamesOfPods,
		"indexedJob":              indexedJob,
		"jobChanges":              jobChanges,
		"jobReport":               jobReport,
		"jobSelectorMatches":      jobSelectorMatches,
		"jobTemplate":             jobTemplate,
		"noJobSelector":           noJobSelector,
	},
	Derive: map[string]rules.DeriveFunc{
		"backoffPerIndex": backoffPerIndex,
		"podReplacement":  podReplacement,
		"jobCompletions":  jobCompletions,
		"labelsOfJob":     labelsOfJob,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"createJob": createJob,
	},
	Cells: map[string]cell.Func{
		"showJobCompletions": showJobCompletions,
		"showJobDuration":    showJobDuration,
		"showJobStatus":      showJobStatus,
	},
}
