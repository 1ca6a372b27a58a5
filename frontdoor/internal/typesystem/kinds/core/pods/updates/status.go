package updates

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
)

// Releases that check more of the status.
var (
	addressesOfHosts, _ = release.Of("1.29")
	fixedQuality, _     = release.Of("1.32")
	observed, _         = release.Of("1.33")
	bound, _            = release.Of("1.35")
)

// keepObserved keeps, in a write of the status, the generations that it leaves out.
func keepObserved(w kinds.Write, obj, old map[string]any) {
	if w.Subresource != "status" || w.Release.Before(observed) {
		return
	}
	const name = "observedGeneration"
	is, was := rules.Object(obj, "status"), rules.Object(old, "status")
	if is == nil {
		return
	}
	kinds.KeepMissing(is, was, name)
	before := map[string][]map[string]any{}
	for _, condition := range rules.Objects(was, "conditions") {
		kind := rules.Text(condition, "type")
		before[kind] = append(before[kind], condition)
	}
	for _, condition := range rules.Objects(is, "conditions") {
		kind := rules.Text(condition, "type")
		if had := before[kind]; len(had) > 0 {
			kinds.KeepMissing(condition, had[0], name)
			before[kind] = had[1:]
		}
	}
}

// statusChange validates an update of a pod's status.
func statusChange(c *rules.Check, m, old map[string]any, at *field.Path) {
	before, after := rules.Object(old, "status"), rules.Object(m, "status")
	at = at.Field("status")
	nominated(c, m, old, at.Field("nominatedNodeName"))
	transitions(c, old, after, at)
	for i, condition := range rules.Objects(after, "conditions") {
		kind, at := rules.Text(condition, "type"), at.Field("conditions").Item(i)
		for _, problem := range validation.IsQualifiedName(kind) {
			c.Invalid(at.Field("Type"), kind, problem)
		}
		generation(c, condition, at)
	}
	addresses(c, after, before, at.Field("podIPs"))
	if !c.Release.Before(addressesOfHosts) {
		hostAddresses(c, after, before, at.Field("hostIPs"))
	}
	if now := after["qosClass"]; !c.Release.Before(fixedQuality) && now != before["qosClass"] {
		c.Invalid(at.Field("qosClass"), now, "field is immutable")
	}
	if !c.Release.Before(observed) {
		generation(c, after, at)
		claimStatuses(c, m, at.Field("resourceClaimStatuses"))
		extendedClaim(c, m, at.Field("extendedResourceClaimStatus"))
		containerStatuses(c, m, at)
	}
}

func generation(c *rules.Check, m map[string]any, at *field.Path) {
	if n := rules.Number(m, "observedGeneration"); n < 0 {
		c.Invalid(at.Field("observedGeneration"), n, "must be a non-negative integer")
	}
}

// nominated checks the node that is kept for a pod: one on a node gets no other.
func nominated(c *rules.Check, m, old map[string]any, at *field.Path) {
	name := rules.Text(rules.Object(m, "status"), "nominatedNodeName")
	if name == rules.Text(rules.Object(old, "status"), "nominatedNodeName") {
		return
	}
	c.Must(validation.IsDNS1123Subdomain, name, at)
	if name != "" && rules.Text(rules.Object(old, "spec"), "nodeName") != "" && !c.Release.Before(bound) {
		c.Forbidden(at, "may not be set on pods that are already bound to a node")
	}
}

// addresses checks that a pod has at most one address per IP family. The stored addresses may
// stay.
func addresses(c *rules.Check, status, old map[string]any, at *field.Path) {
	all := rules.Objects(status, at.Name)
	stored := map[string]bool{}
	for _, one := range rules.Objects(old, at.Name) {
		stored[rules.Text(one, "ip")] = true
	}
	for i, one := range all {
		if stored[rules.Text(one, "ip")] {
			continue
		}
		ip := rules.Text(one, "ip")
		for _, problem := range format.IP(ip) {
			c.Invalid(at.Item(i), ip, problem)
		}
	}
	seen, families := map[string]bool{}, map[bool]bool{}
	for i, one := range all {
		ip := rules.Text(one, "ip")
		if seen[ip] && c.Release.Before(addressesOfHosts) {
			c.Duplicate(at.Item(i), one)
		}
		address, _ := netip.ParseAddr(ip)
		seen[ip], families[address.Is4()] = true, true
	}
	if len(families) < len(all) {
		c.Invalid(at, all, "may specify no more than one IP for each IP family")
	}
}

// hostAddresses checks the addresses of the host, of which hostIP is the first one.
func hostAddresses(c *rules.Check, status, old map[string]any, at *field.Path) {
	all := rules.Objects(status, at.Name)
	if len(all) == 0 {
		return
	}
	if first := rules.Text(all[0], "ip"); first != rules.Text(status, "hostIP") {
		c.Invalid(at.Item(0).Field("ip"), first, "must be equal to `hostIP`")
	}
	addresses(c, status, old, at)
}
