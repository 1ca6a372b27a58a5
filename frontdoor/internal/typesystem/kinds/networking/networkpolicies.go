package networking

import (
	"net/netip"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

func blockOrSelectors(c *rules.Check, m, _ map[string]any, at *field.Path) {
	selects := m["podSelector"] != nil || m["namespaceSelector"] != nil
	switch {
	case m["ipBlock"] != nil && selects:
		c.Forbidden(at, "may not specify both ipBlock and another peer")
	case m["ipBlock"] == nil && !selects:
		c.Required(at, "must specify a peer")
	}
}

// ipBlockExceptions checks that exceptions are strict subsets of the block.
func ipBlockExceptions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	block, err := netip.ParsePrefix(rules.Text(m, "cidr"))
	if err != nil {
		return // reported by its format
	}
	for i, text := range rules.Texts(m, "except") {
		except, err := netip.ParsePrefix(text)
		if err != nil {
			c.Invalid(at.Field("except").Item(i), text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
		} else if except.Bits() <= block.Bits() || !block.Contains(except.Addr()) {
			c.Invalid(at.Field("except").Item(i), text, "must be a strict subset of `cidr`")
		}
	}
}

// policyPortRange checks that endPort follows a numeric port and is not lower.
func policyPortRange(c *rules.Check, m, _ map[string]any, at *field.Path) {
	end, ok := rules.Whole(m["endPort"])
	if !ok {
		return
	}
	at = at.Field("endPort")
	switch port, numeric := rules.Whole(m["port"]); {
	case m["port"] == nil:
		c.Invalid(at, end, "may not be specified when `port` is not specified")
	case !numeric:
		c.Invalid(at, end, "may not be specified when `port` is non-numeric")
	default:
		if end < port {
			c.Invalid(at, port, "must be greater than or equal to `port`")
		}
		checkPort(c, end, at)
	}
}

func twoPolicyTypes(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if types := rules.List(m, "policyTypes"); len(types) > 2 {
		c.Invalid(at.Field("policyTypes"), types, "may not specify more than two policyTypes")
	}
}

// defaultPolicyTypes defaults policyTypes: Ingress, and Egress if there are egress rules.
func defaultPolicyTypes(m map[string]any, _ vocabulary.Vocabulary) {
	if !rules.Empty(m["policyTypes"]) {
		return
	}
	types := []any{"Ingress"}
	if len(rules.List(m, "egress")) > 0 {
		types = append(types, "Egress")
	}
	m["policyTypes"] = types
}
