package batch

import (
	"maps"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// The releases from which a suspended Job may change where its pods run, and what they need.
var (
	placementMutable, _ = release.Of("1.27")
	resourcesMutable, _ = release.Of("1.36")
)

// jobChanges checks the immutable fields of a Job. The job template of a CronJob is
// mutable.
func jobChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil {
		return
	}
	spec, before, at := rules.Object(m, "spec"), rules.Object(old, "spec"), at.Field("spec")
	immutable := []string{"completions", "selector", "completionMode"}
	if !c.Release.Before(labelsQualified) {
		immutable = append(immutable, "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
		if spec["completionMode"] == "Indexed" {
			immutable = immutable[1:] // an indexed Job may be scaled
			inTandem(c, spec, before, at)
		}
	}
	for _, name := range immutable {
		if !rules.SameField(spec, before, name) || name == "managedBy" && spec[name] != before[name] { // "" is not none
			c.Invalid(at.Field(name), spec[name], "field is immutable")
		}
	}
	switch may := allowed(c, m, old); {
	case isOpen(old) && resizes(c): // the metadata of its pods may change, too
		if now := rules.Object(spec, "template")["spec"]; !rules.Same(now, rules.AsObject(may)["spec"]) {
			c.Invalid(at.Field("template").Field("spec"), now, "field is immutable")
		}
	case !rules.Same(spec["template"], may):
		c.Invalid(at.Field("template"), spec["template"], "field is immutable")
	}
}

// isOpen reports whether a Job has no pods and makes none.
func isOpen(job map[string]any) bool {
	status := rules.Object(job, "status")
	stopped := status["startTime"] == nil || slices.ContainsFunc(rules.ConditionsOf(job, "Suspended"), func(condition map[string]any) bool {
		return condition["status"] == "True"
	})
	return rules.Object(job, "spec")["suspend"] == true && stopped && rules.Number(status, "active") == 0
}

// resizes reports whether a suspended Job may change the resources of its pods.
func resizes(c *rules.Check) bool {
	return !c.Release.Before(resourcesMutable) && c.On("MutablePodResourcesForSuspendedJobs")
}

// inTandem checks that the completions of an indexed Job change with its parallelism.
func inTandem(c *rules.Check, spec, before map[string]any, at *field.Path) {
	completions := spec["completions"]
	if completions != nil && !rules.Same(completions, before["completions"]) && !rules.Same(completions, spec["parallelism"]) {
		c.Invalid(at.Field("completions"), completions, "can only be modified in tandem with spec.parallelism")
	}
}

// allowed returns the former template of a Job, with those parts of the new one that may
// change while the Job is suspended.
func allowed(c *rules.Check, job, old map[string]any) any {
	was := rules.Object(old, "spec", "template")
	suspended := rules.Object(old, "spec")["suspend"] == true
	if !suspended || was == nil || c.Release.Before(placementMutable) {
		return rules.Object(old, "spec")["template"]
	}
	template, _ := tree.Copy(was).(map[string]any)
	now, spec := rules.Object(job, "spec", "template"), tree.Object(template, "spec")
	next := rules.Object(now, "spec")
	places := rules.Object(old, "status")["startTime"] == nil
	if !c.Release.Before(resourcesMutable) && c.On("MutableSchedulingDirectivesForSuspendedJobs") {
		places = isOpen(old)
	}
	if places {
		for _, name := range [...]string{"nodeSelector", "tolerations", "schedulingGates"} {
			take(spec, next, name)
		}
		metadata, given := tree.Object(template, "metadata"), rules.Object(now, "metadata")
		take(metadata, given, "labels")
		take(metadata, given, "annotations")
		nodeAffinity(spec, next)
	}
	if resizes(c) && isOpen(old) {
		for _, list := range [...]string{"containers", "initContainers"} {
			resources(rules.Objects(spec, list), rules.Objects(next, list))
		}
	}
	return template
}

// take sets a member to that of another object.
func take(m, from map[string]any, name string) {
	delete(m, name)
	if value, ok := from[name]; ok {
		m[name] = value
	}
}

// nodeAffinity takes over the affinity to nodes, but not that to pods.
func nodeAffinity(spec, next map[string]any) {
	affinity := maps.Clone(rules.Object(spec, "affinity"))
	if affinity == nil {
		affinity = map[string]any{}
	}
	take(affinity, rules.Object(next, "affinity"), "nodeAffinity")
	delete(spec, "affinity")
	if len(affinity) > 0 || next["affinity"] != nil {
		spec["affinity"] = affinity
	}
}

// resources takes over the resources of containers that have the same names and order.
func resources(containers, next []map[string]any) {
	if len(containers) != len(next) {
		return
	}
	for i := range containers {
		if containers[i]["name"] == next[i]["name"] {
			take(containers[i], next[i], "resources")
		}
	}
}
