package volumes

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// imageReference checks that the volume of a pod names its image. Controllers may complete
// templates.
func imageReference(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if c.Root["kind"] == "Pod" && rules.Text(m, "reference") == "" {
		c.Required(at.Field("reference"), "")
	}
}
