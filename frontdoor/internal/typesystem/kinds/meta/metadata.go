package meta

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// selectorOperatorValues checks the values of a requirement of a label selector.
func selectorOperatorValues(c *rules.Check, m, old map[string]any, at *field.Path) {
	c.OperatorValues(m, at)
}
