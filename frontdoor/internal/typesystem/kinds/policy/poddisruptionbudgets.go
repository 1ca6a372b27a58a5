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

// oneKindOfBudget: a budget says how many must be there, or how many may be away.
func oneKindOfBudget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["minAvailable"] != nil && m["maxUnavailable"] != nil {
		c.Invalid(at, fmt.Sprintf("minAvailable %v, maxUnavailable %v", m["minAvailable"], m["maxUnavailable"]),
			"minAvailable and maxUnavailable cannot be both set")
	}
}

// What a condition may say.
var (
	conditionStates = []string{"False", "True", "Unknown"}
	reasonPattern   = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

const (
	longestReason  = 1 << 10
	longestMessage = 1 << 15
)

// statusConditions: each is of a type of its own and says since when it holds, and why.
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
		conditionSays(c, condition, here)
	}
}

// conditionSays checks all of a condition but its type.
func conditionSays(c *rules.Check, condition map[string]any, at *field.Path) {
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
