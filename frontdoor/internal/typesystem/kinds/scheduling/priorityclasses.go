package scheduling

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// highestPriority is what users may give; above it is the system's own.
const highestPriority = 1000000000

// systemPriorities are the values of the priority classes of the system.
var systemPriorities = map[string]int64{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

func systemPriority(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name := rules.Text(rules.Object(m, "metadata"), "name")
	critical, system := systemPriorities[name]
	switch {
	case strings.HasPrefix(name, "system-") && !system:
		c.Forbidden(at.Field("metadata").Field("name"), "priority class names with 'system-' prefix are reserved for system use only")
	case system && rules.Number(m, "value") != critical:
		c.Forbidden(at.Field("metadata").Field("name"), fmt.Sprintf("priority class names with 'system-' prefix are reserved for system use only. "+
			"error: value of %s PriorityClass must be %d", name, critical))
	case system && m["globalDefault"] == true:
		c.Forbidden(at.Field("metadata").Field("name"), fmt.Sprintf("priority class names with 'system-' prefix are reserved for system use only. "+
			"error: globalDefault of %s PriorityClass must be false", name))
	}
	if rules.Number(m, "value") > highestPriority && !system {
		c.Forbidden(at.Field("value"), "maximum allowed value of a user defined priority is 1000000000")
	}
}

// priorityStays: pods that have a priority keep it.
func priorityStays(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && !rules.Same(m["value"], old["value"]) {
		c.Forbidden(at.Field("value"), "may not be changed in an update.")
	}
}
