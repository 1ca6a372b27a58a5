package networking

import (
	"net/netip"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// serviceRanges checks that there is one range of each IP family at most. Those that are stored
// do not change; one of the other family may be added.
func serviceRanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	const fixed = "field is immutable"
	ranges, before, at := rules.Texts(m, "cidrs"), rules.Texts(old, "cidrs"), at.Field("cidrs")
	if old != nil && len(ranges) != len(before) && (len(before) != 1 || len(ranges) != 2) {
		c.Invalid(at, ranges, fixed)
		return
	}
	for i, one := range before {
		if ranges[i] != one {
			c.Invalid(at.Item(i), ranges[i], fixed)
		}
	}
	if len(ranges) == len(before) {
		return
	}
	if len(ranges) > 2 {
		c.Invalid(at, ranges, "may only hold up to 2 values")
		return
	}
	families, known := map[bool]bool{}, true
	for i, one := range ranges {
		for _, problem := range format.CanonicalCIDR(one) {
			c.Invalid(at.Item(i), one, problem)
		}
		prefix, err := netip.ParsePrefix(one)
		known = known && err == nil
		families[prefix.Addr().Is4()] = true
	}
	if known && len(families) < len(ranges) {
		c.Invalid(at, ranges, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
	}
}
