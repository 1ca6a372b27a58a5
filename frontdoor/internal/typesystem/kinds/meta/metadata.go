package meta

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// selectorOperatorValues validates the values of a label selector requirement.
func selectorOperatorValues(c *rules.Check, m, old map[string]any, at *field.Path) {
	c.OperatorValues(m, at)
}
