// Package apps holds the functions of Deployments, ReplicaSets, StatefulSets, DaemonSets
// and ControllerRevisions. It does not validate pod specs. It serves "Resources and their
// fields" of the specification.
package apps

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"claimVolumes":        claimVolumes,
		"collisionsAddUp":     collisionsAddUp,
		"daemonProgress":      daemonProgress,
		"keptRevisions":       keptRevisions,
		"namesOfPods":         namesOfPods,
		"partsOfWhole":        partsOfWhole,
		"progressDeadline":    progressDeadline,
		"revisionData":        revisionData,
		"selectorMatches":     selectorMatches,
		"statefulSetChanges":  statefulSetChanges,
		"statefulSetName":     statefulSetName,
		"statefulSetPolicies": statefulSetPolicies,
		"updateProgress":      updateProgress,
		"workloadTemplate":    workloadTemplate,
	},
	Derive: map[string]rules.DeriveFunc{
		"showTemplateGeneration": showTemplateGeneration,
		"claimTemplates":         claimTemplates,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"countTemplates":  countTemplates,
		"createDaemonSet": createDaemonSet,
	},
	Cells: map[string]cell.Func{
		"showOwner":          showOwner,
		"showReadyOfDesired": showReadyOfDesired,
	},
}
