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
	if spec == nil || !rules.Empty(spec["podReplacementPolicy"]) {
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

// backoffOfIndexes checks that only Jobs with indexes have limits per index.
func backoffOfIndexes(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	if spec["backoffLimitPerIndex"] != nil && spec["completionMode"] != "Indexed" {
		c.Invalid(at.Field("backoffLimitPerIndex"), spec["backoffLimitPerIndex"], "requires indexed completion mode")
	}
	if spec["maxFailedIndexes"] != nil && spec["backoffLimitPerIndex"] == nil {
		c.Required(at.Field("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
	}
	if spec["successPolicy"] != nil && spec["completionMode"] != "Indexed" {
		c.Invalid(at.Field("successPolicy"), spec["successPolicy"], "requires indexed completion mode")
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
