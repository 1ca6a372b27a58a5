package rules

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
)

// selectorMatches: a workload selects the pods that its template makes.
func selectorMatches(c *Check, m, _ map[string]any, _ *field.Path) {
	spec := objectOf(m, "spec")
	made := objectOf(objectOf(objectOf(spec, "template"), "metadata"), "labels")
	at := &field.Path{Name: "spec"}
	selector := objectOf(spec, "selector")
	if selector == nil {
		return // required, and reported as such
	}
	if len(selector) == 0 || emptySelector(selector) {
		c.Invalid(at.Field("selector"), selector, "empty selector is invalid for a workload")
		return
	}
	parsed, err := parseSelector(selector)
	if err != nil {
		return // its own fields say why
	}
	if !parsed.Matches(labelSet(made)) {
		c.Invalid(at.Field("template").Field("metadata").Field("labels"), made, "`selector` does not match template `labels`")
	}
}

func emptySelector(selector map[string]any) bool {
	_, structured := selector["matchLabels"]
	_, expressions := selector["matchExpressions"]
	return (structured || expressions) && len(objectOf(selector, "matchLabels")) == 0 && len(listOf(selector, "matchExpressions")) == 0
}

// parseSelector reads a label selector, or the plain map of an older kind.
func parseSelector(selector map[string]any) (labels.Selector, error) {
	if selector["matchLabels"] == nil && selector["matchExpressions"] == nil {
		return labels.SelectorFromSet(labelSet(selector)), nil
	}
	if len(listOf(selector, "matchExpressions")) == 0 {
		return labels.SelectorFromSet(labelSet(objectOf(selector, "matchLabels"))), nil
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&typed)
}

func labelSet(m map[string]any) labels.Set {
	set := make(labels.Set, len(m))
	for key, value := range m {
		set[key], _ = value.(string)
	}
	return set
}

// restarts checks the restart policy of a template.
func restarts(allowed ...string) Comparison {
	return func(c *Check, m, _ map[string]any, at *field.Path) {
		policy := textOf(objectOf(objectOf(objectOf(m, "spec"), "template"), "spec"), "restartPolicy")
		if policy == "" || slices.Contains(allowed, policy) {
			return
		}
		c.NotSupported(at.Field("spec").Field("template").Field("spec").Field("restartPolicy"), policy, allowed...)
	}
}

func progressDeadline(c *Check, m, _ map[string]any, at *field.Path) {
	if deadline, ok := Whole(m["progressDeadlineSeconds"]); ok && deadline <= numberOf(m, "minReadySeconds") {
		c.Invalid(at.Field("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")
	}
}

func rollingUpdateType(c *Check, m, _ map[string]any, at *field.Path) {
	if m["rollingUpdate"] != nil && m["type"] != "RollingUpdate" {
		c.Forbidden(at.Field("rollingUpdate"), fmt.Sprintf("may not be specified when strategy `type` is '%v'", m["type"]))
	}
}

// updateProgress: an update must be allowed to start or to stop some pod.
func updateProgress(c *Check, m, _ map[string]any, at *field.Path) {
	if isNone(m["maxUnavailable"]) && isNone(m["maxSurge"]) {
		c.Invalid(at.Field("maxUnavailable"), m["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
	}
}

func isNone(value any) bool {
	i, ok := Whole(value)
	return ok && i == 0 || value == "0%" || value == "0"
}

// jobSelectorMatches: a job selects the pods that its template makes.
func jobSelectorMatches(c *Check, m, old map[string]any, at *field.Path) {
	spec := objectOf(m, "spec")
	if spec == nil {
		return
	}
	if spec["selector"] == nil && textOf(objectOf(m, "metadata"), "uid") != "" {
		c.Required(at.Field("spec").Field("selector"), "")
	}
	selectorMatches(c, m, old, at)
	if spec["completionMode"] == "Indexed" && spec["completions"] == nil {
		c.Required(at.Field("spec").Field("completions"), "when completion mode is Indexed")
	}
}

// maxCronJobName leaves room for what a job's name adds.
const maxCronJobName = 52

func cronJobName(c *Check, m, old map[string]any, _ *field.Path) {
	if name := textOf(objectOf(m, "metadata"), "name"); old == nil && len(name) > maxCronJobName {
		c.Invalid((&field.Path{Name: "metadata"}).Field("name"), name, "must be no more than 52 characters")
	}
}

func minimumBelowMaximum(c *Check, m, _ map[string]any, at *field.Path) {
	if maximum, ok := Whole(m["maxReplicas"]); ok && maximum < numberOf(m, "minReplicas") {
		c.Invalid(at.Field("maxReplicas"), maximum, "must be greater than or equal to `minReplicas`")
	}
}

// highestPriority is what users may give; above it is the system's own.
const highestPriority = 1000000000

func systemPriority(c *Check, m, _ map[string]any, _ *field.Path) {
	name := textOf(objectOf(m, "metadata"), "name")
	system := name == "system-cluster-critical" || name == "system-node-critical"
	if strings.HasPrefix(name, "system-") && !system {
		c.Forbidden((&field.Path{Name: "metadata"}).Field("name"), "priority class names with 'system-' prefix are reserved for system use only")
	}
	if value := numberOf(m, "value"); value > highestPriority && !system {
		c.Forbidden(&field.Path{Name: "value"}, fmt.Sprintf("maximum allowed value of a user defined priority is %d", highestPriority))
	}
}
