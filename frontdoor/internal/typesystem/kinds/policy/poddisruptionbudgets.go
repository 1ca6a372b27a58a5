package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"k8s.io/apimachinery/pkg/util/validation"
)

// oneKindOfBudget checks that minAvailable and maxUnavailable are not both set.
func oneKindOfBudget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["minAvailable"] != nil && m["maxUnavailable"] != nil {
		c.Invalid(at, fmt.Sprintf("minAvailable %v, maxUnavailable %v", m["minAvailable"], m["maxUnavailable"]),
			"minAvailable and maxUnavailable cannot be both set")
	}
}

// Valid values in conditions.
var (
	conditionStates = []string{"False", "True", "Unknown"}
	reasonPattern   = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

const (
	longestReason  = 1 << 10
	longestMessage = 1 << 15
)

// statusConditions validates conditions, and that their types are unique.
func statusConditions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	seen := map[string]bool{}
	for i, condition := range rules.Objects(m, "conditions") {
		here := at.Field("conditions").Item(i)
		kind := rules.Text(condition, "type")
		if kind == "" {
			c.Required(here.Field("type"), "")
		} else if seen[kind] {
			c.Duplicate(here.Field("type"), kind)
		}
		seen[kind] = true
		c.Must(validation.IsQualifiedName, kind, here.Field("type"))
		conditionFields(c, condition, here)
	}
}

// conditionFields validates the fields of a condition other than its type.
func conditionFields(c *rules.Check, condition map[string]any, at *field.Path) {
	if state := rules.Text(condition, "status"); !slices.Contains(conditionStates, state) {
		c.NotSupported(at.Field("status"), state, conditionStates...)
	}
	if seen := rules.Number(condition, "observedGeneration"); seen < 0 {
		c.Invalid(at.Field("observedGeneration"), seen, "must be greater than or equal to zero")
	}
	if rules.Empty(condition["lastTransitionTime"]) {
		c.Required(at.Field("lastTransitionTime"), "must be set")
	}
	reason, message := rules.Text(condition, "reason"), rules.Text(condition, "message")
	switch {
	case reason == "":
		c.Required(at.Field("reason"), "must be set")
	case len(reason) > longestReason:
		c.TooLong(at.Field("reason"), longestReason)
	case !reasonPattern.MatchString(reason):
		c.Invalid(at.Field("reason"), reason, fmt.Sprintf("a condition reason must match %s", strings.Trim(reasonPattern.String(), "^$")))
	}
	if len(message) > longestMessage {
		c.TooLong(at.Field("message"), longestMessage)
	}
}
