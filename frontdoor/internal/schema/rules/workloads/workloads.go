// Package workloads holds the rules of what makes and scales pods: deployments, sets
// and jobs, autoscalers and disruption budgets. It never looks at the pods. It
// serves what users of workloads expect.
package workloads

import (
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/frontdoor/internal/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Comparisons are those that the overlay may name.
var Comparisons = map[string]rules.Comparison{
	"selector matches the template":      selectorMatches,
	"template of a workload":             workloadTemplate,
	"template of a job":                  jobTemplate,
	"progress deadline after ready":      progressDeadline,
	"update makes progress":              updateProgress,
	"changes that a stateful set allows": statefulSetChanges,
	"job selector":                       jobSelectorMatches,
	"selector is made by the job":        noJobSelector,
	"cron job name leaves room":          cronJobName,
	"minimum below maximum":              minimumBelowMaximum,
	"one target of a metric":             metricTarget,
	"policies of a scaling rule":         scalingPolicies,
	"two ways to say what is available":  oneBudget,
}

// Derivations are those that the overlay may name.
var Derivations = map[string]rules.Derivation{
	"selector and labels of template": labelsOfTemplate,
	"claim templates":                 claimTemplates,
	"completions and parallelism":     completions,
	"CPU target of the oldest":        oldestTarget,
}

// selectorMatches: a workload selects the pods that its template makes.
func selectorMatches(c *rules.Check, m, _ map[string]any, at *field.Path) {
	spec := rules.Object(m, "spec")
	selector := rules.Object(spec, "selector")
	if selector == nil {
		return // required, and reported as such
	}
	at = at.Field("spec")
	if rules.IsEmptySelector(selector) {
		c.Invalid(at.Field("selector"), selector, "empty selector is invalid for a workload")
		return
	}
	made := rules.Object(spec, "template", "metadata", "labels")
	if !rules.Selects(selector, made) {
		c.Invalid(at.Field("template").Field("metadata").Field("labels"), made, "`selector` does not match template `labels`")
	}
}

// workloadTemplate: what should be there always is started again and again.
func workloadTemplate(c *rules.Check, m, _ map[string]any, at *field.Path) {
	restarts(c, m, at, "Always")
	if deadline := rules.Object(m, "spec", "template", "spec")["activeDeadlineSeconds"]; deadline != nil {
		c.Forbidden(templateOf(at).Field("activeDeadlineSeconds"), "activeDeadlineSeconds in "+rules.Text(c.Root, "kind")+" is not Supported")
	}
	noDebuggers(c, m, at)
}

// jobTemplate: what should end is not started again when it has.
func jobTemplate(c *rules.Check, m, _ map[string]any, at *field.Path) {
	restarts(c, m, at, "OnFailure", "Never")
	noDebuggers(c, m, at)
}

// templateOf is the path of the spec in the template of a workload.
func templateOf(at *field.Path) *field.Path {
	return at.Field("spec").Field("template").Field("spec")
}

// restarts checks the restart policy of a template.
func restarts(c *rules.Check, m map[string]any, at *field.Path, allowed ...string) {
	policy := rules.Text(rules.Object(m, "spec", "template", "spec"), "restartPolicy")
	if policy != "" && !slices.Contains(allowed, policy) {
		c.NotSupported(templateOf(at).Field("restartPolicy"), policy, allowed...)
	}
}

// noDebuggers: containers for debugging are added to a pod, not to its template.
func noDebuggers(c *rules.Check, m map[string]any, at *field.Path) {
	if len(rules.List(rules.Object(m, "spec", "template", "spec"), "ephemeralContainers")) > 0 {
		c.Forbidden(templateOf(at).Field("ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
}

func progressDeadline(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if deadline, ok := rules.Whole(m["progressDeadlineSeconds"]); ok && deadline <= rules.Number(m, "minReadySeconds") {
		c.Invalid(at.Field("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")
	}
}

// updateProgress: an update must be allowed to start or to stop some pod.
func updateProgress(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if isNone(m["maxUnavailable"]) && isNone(m["maxSurge"]) {
		c.Invalid(at.Field("maxUnavailable"), m["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
	}
}

func isNone(value any) bool {
	i, ok := rules.Whole(value)
	return ok && i == 0 || value == "0%" || value == "0"
}

// statefulSetChanges: what gives pods their identity stays.
func statefulSetChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	mutable := []string{"replicas", "template", "updateStrategy"}
	before := rules.Object(old, "spec")
	if before != nil && !rules.Same(rules.Without(rules.Object(m, "spec"), mutable...), rules.Without(before, mutable...)) {
		c.Forbidden(at.Field("spec"), "updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden")
	}
}

// claimTemplates says of the claims that a stateful set makes what they are.
func claimTemplates(m map[string]any, _ vocabulary.Vocabulary) {
	for _, claim := range rules.Objects(m, "volumeClaimTemplates") {
		if claim != nil {
			claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
		}
	}
}

// labelsOfTemplate lets a replication controller select what its template makes.
func labelsOfTemplate(m map[string]any, _ vocabulary.Vocabulary) {
	spec := rules.Object(m, "spec")
	labels := rules.Object(spec, "template", "metadata", "labels")
	if len(labels) == 0 {
		return
	}
	if len(rules.Object(spec, "selector")) == 0 {
		spec["selector"] = tree.Copy(labels)
	}
	if len(rules.Object(m, "metadata", "labels")) == 0 {
		rules.Complete(m, map[string]any{"metadata": map[string]any{"labels": labels}})
	}
}

// oneBudget: a budget says how many must be there, or how many may be away.
func oneBudget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["minAvailable"] != nil && m["maxUnavailable"] != nil {
		c.Invalid(at, fmt.Sprintf("minAvailable %v, maxUnavailable %v", m["minAvailable"], m["maxUnavailable"]),
			"minAvailable and maxUnavailable cannot be both set")
	}
}
