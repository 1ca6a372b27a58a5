package services

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// endpointSubset checks that a subset has addresses, ready or not, and that ports have
// names if there are several.
func endpointSubset(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(m, "addresses"))+len(rules.List(m, "notReadyAddresses")) == 0 {
		c.Required(at, "must specify `addresses` or `notReadyAddresses`")
	}
	ports := rules.Objects(m, "ports")
	for i, port := range ports {
		if len(ports) > 1 && rules.Text(port, "name") == "" {
			c.Required(at.Field("ports").Item(i).Field("name"), "")
		}
	}
}

func endpointAddress(c *rules.Check, m, _ map[string]any, at *field.Path) {
	CheckNotSpecialIP(c, rules.Text(m, "ip"), at.Field("ip"))
}
