package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/release"
)

// Conditions validates the conditions of a status that have the common fields, each type of
// them once.
func (c *Check) Conditions(conditions []map[string]any, at *field.Path) {
	seen, missing := map[string]bool{}, ""
	if c.Release.Before(release.V136) {
		missing = "must be set"
	}
	for i, condition := range conditions {
		at, kind := at.Item(i), Text(condition, "type")
		if seen[kind] {
			c.Duplicate(at.Field("type"), kind)
		}
		seen[kind] = true
		for _, problem := range validation.IsQualifiedName(kind) {
			c.Invalid(at.Field("type"), kind, problem)
		}
		switch status := Text(condition, "status"); status {
		case "True", "False", "Unknown":
		default:
			c.NotSupported(at.Field("status"), status, "False", "True", "Unknown")
		}
		if generation := Number(condition, "observedGeneration"); generation < 0 {
			c.Invalid(at.Field("observedGeneration"), generation, "must be greater than or equal to zero")
		}
		for _, name := range [...]string{"lastTransitionTime", "reason"} {
			if Empty(condition[name]) {
				c.Required(at.Field(name), missing)
			}
		}
		c.conditionTexts(condition, at)
	}
}

// The limits on the reason and the message of a condition in bytes.
const (
	longestReason  = 1 << 10
	longestMessage = 32 << 10
)

func (c *Check) conditionTexts(condition map[string]any, at *field.Path) {
	if reason := Text(condition, "reason"); len(reason) > longestReason {
		c.TooLong(at.Field("reason"), longestReason)
	} else if reason != "" {
		c.Must(metav1.IsValidConditionReason, reason, at.Field("reason"))
	}
	if len(Text(condition, "message")) > longestMessage {
		c.TooLong(at.Field("message"), longestMessage)
	}
}
