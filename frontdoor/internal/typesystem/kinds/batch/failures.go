package batch

import (
	"math"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// podReplacement defaults when the pods of a Job are replaced: with a failure policy only
// once they have failed, because the policy has to see them.
func podReplacement(m map[string]any, _ vocabulary.Vocabulary) {
	spec := rules.Object(m, "spec")
	if spec == nil || spec["podReplacementPolicy"] != nil {
		return
	}
	spec["podReplacementPolicy"] = "TerminatingOrFailed"
	if spec["podFailurePolicy"] != nil {
		spec["podReplacementPolicy"] = "Failed"
	}
}

// backoffPerIndex defaults backoffLimit: a Job whose indexes have limits of their own has
// no other limit.
func backoffPerIndex(m map[string]any, _ vocabulary.Vocabulary) {
	spec := rules.Object(m, "spec")
	if spec == nil || spec["backoffLimit"] != nil {
		return
	}
	spec["backoffLimit"] = int64(6)
	if spec["backoffLimitPerIndex"] != nil {
		spec["backoffLimit"] = int64(math.MaxInt32)
	}
}

// replacementFitsFailures checks that a Job with a failure policy replaces only pods that
// have failed.
func replacementFitsFailures(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	if spec["podFailurePolicy"] == nil {
		return
	}
	if policy := rules.Text(spec, "podReplacementPolicy"); policy == "TerminatingOrFailed" {
		c.NotSupported(at.Field("podReplacementPolicy"), policy, "Failed")
	}
	if restart := rules.Text(rules.Object(spec, "template", "spec"), "restartPolicy"); restart != "Never" {
		c.Invalid(at.Field("template").Field("spec").Field("restartPolicy"), restart, `only "Never" is supported when podFailurePolicy is specified`)
	}
}

// failureCause checks that a rule has one of its two causes.
func failureCause(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch codes, conditions := m["onExitCodes"] != nil, len(rules.List(m, "onPodConditions")) > 0; {
	case codes && conditions:
		c.InvalidWhole(at, "specifying both OnExitCodes and OnPodConditions is not supported")
	case !codes && !conditions:
		c.InvalidWhole(at, "specifying one of OnExitCodes and OnPodConditions is required")
	}
}

// failureRules checks the rules of a failure policy against the rest of the Job.
func failureRules(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	names := map[string]bool{}
	for _, list := range [...]string{"containers", "initContainers"} {
		for _, container := range rules.Objects(rules.Object(spec, "template", "spec"), list) {
			names[rules.Text(container, "name")] = true
		}
	}
	for i, rule := range rules.Objects(rules.Object(spec, "podFailurePolicy"), "rules") {
		where := at.Field("podFailurePolicy").Field("rules").Item(i)
		if rule["action"] == "FailIndex" && spec["backoffLimitPerIndex"] == nil {
			c.Invalid(where.Field("action"), rule["action"], "requires the backoffLimitPerIndex to be set")
		}
		codes := rules.Object(rule, "onExitCodes")
		if codes == nil {
			continue
		}
		where = where.Field("onExitCodes")
		if name := codes["containerName"]; name != nil && !names[rules.Text(codes, "containerName")] {
			c.Invalid(where.Field("containerName"), name, "must be one of the container or initContainer names in the pod template")
		}
		exitCodes(c, codes, where.Field("values"))
	}
}

// exitCodes checks that exit codes are in order, and that success is no failure.
func exitCodes(c *rules.Check, codes map[string]any, at *field.Path) {
	values, _ := codes["values"].([]any)
	ordered, before := true, int64(math.MinInt64)
	for i, value := range values {
		code, _ := value.(int64)
		if code == 0 && codes["operator"] == "In" {
			c.Invalid(at.Item(i), code, "must not be 0 for the In operator")
		}
		ordered, before = ordered && before <= code, code
	}
	if len(values) == 0 {
		c.Invalid(at, nil, "at least one value is required")
	}
	if !ordered {
		c.Invalid(at, values, "must be ordered")
	}
}
