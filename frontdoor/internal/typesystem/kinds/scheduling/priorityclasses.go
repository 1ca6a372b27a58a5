package scheduling

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// highestPriority is the highest priority of user-defined classes.
const highestPriority = 1000000000

// systemPriorities are the values of the system's priority classes.
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

// priorityImmutable checks that the value does not change, because pods have copied it.
func priorityImmutable(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && !rules.Same(m["value"], old["value"]) {
		c.Forbidden(at.Field("value"), "may not be changed in an update.")
	}
}
