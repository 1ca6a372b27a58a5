package policy

import (
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// oneKindOfBudget checks that minAvailable and maxUnavailable are not both set.
func oneKindOfBudget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["minAvailable"] != nil && m["maxUnavailable"] != nil {
		c.Invalid(at, fmt.Sprintf("minAvailable %v, maxUnavailable %v", m["minAvailable"], m["maxUnavailable"]),
			"minAvailable and maxUnavailable cannot be both set")
	}
}

// statusConditions validates the conditions of a budget.
func statusConditions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	c.Conditions(rules.Objects(m, "conditions"), at.Field("conditions"))
}
