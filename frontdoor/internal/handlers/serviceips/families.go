package serviceips

import (
	"net/netip"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/tree"
)

// The values of ipFamilies and ipFamilyPolicy.
const (
	ipv4, ipv6       = "IPv4", "IPv6"
	singleStack      = "SingleStack"
	preferDualStack  = "PreferDualStack"
	requireDualStack = "RequireDualStack"
)

func familyOf(ip netip.Addr) string {
	if ip.Unmap().Is4() {
		return ipv4
	}
	return ipv6
}

func otherFamily(family string) string {
	if family == ipv4 {
		return ipv6
	}
	return ipv4
}

// stack holds the fields of a Service's spec that determine its cluster IPs.
type stack struct {
	external bool // type ExternalName: no addresses at all
	headless bool
	selects  bool // has a selector
	policy   string
	ips      []string
	families []string
}

func stackOf(spec map[string]any) stack {
	s := stack{external: typeOf(spec) == externalName, policy: tree.Text(spec, "ipFamilyPolicy"),
		ips: tree.Texts(spec, "clusterIPs"), families: tree.Texts(spec, "ipFamilies")}
	if selector, _ := spec["selector"].(map[string]any); len(selector) > 0 {
		s.selects = true
	}
	s.headless = len(s.ips) > 0 && s.ips[0] == none
	return s
}

// has reports whether the Service has cluster IPs: it is neither headless nor new.
func (s stack) has() bool { return !s.external && !s.headless && len(s.ips) > 0 }

var (
	atIPs      = (&field.Path{Name: "spec"}).Field("clusterIPs")
	atFamilies = (&field.Path{Name: "spec"}).Field("ipFamilies")
	atPolicy   = (&field.Path{Name: "spec"}).Field("ipFamilyPolicy")
)

// settle completes the policy and the families from the Service, its previous state and
// the networks. before is zero for a new Service. Package schema has validated the
// addresses themselves.
func (s *stack) settle(before stack, n Networks, problems *field.Errors) {
	if s.external {
		return // it has no cluster IPs, as package schema has validated
	}
	if before.policy == preferDualStack && s.policy == preferDualStack && slices.Equal(s.ips, before.ips) && slices.Equal(s.families, before.families) {
		return // PreferDualStack is evaluated again only if another field changes
	}
	if s.policy == "" {
		s.policy = s.defaultPolicy(before)
	}
	s.shrink(before, problems)
	s.unchangeable(before, problems)
	s.infer(n, problems)
	if len(problems.Causes()) > 0 {
		return
	}
	if s.headless && !s.selects {
		s.freely(n) // its endpoints are created manually and may have any family
		return
	}
	s.available(n, problems)
}

func (s *stack) defaultPolicy(before stack) string {
	switch {
	case before.policy != "":
		return before.policy
	case s.headless && !s.selects:
		return requireDualStack
	}
	return singleStack
}

// shrink drops the second family of a Service that becomes single-stack.
func (s *stack) shrink(before stack, problems *field.Errors) {
	if s.policy == singleStack {
		if slices.Equal(s.ips, before.ips) {
			s.ips = s.ips[:min(len(s.ips), 1)]
		}
		if slices.Equal(s.families, before.families) {
			s.families = s.families[:min(len(s.families), 1)]
		}
		if len(s.ips) == 2 || len(s.families) == 2 {
			problems.Invalid(atPolicy, s.policy, "must be 'RequireDualStack' or 'PreferDualStack' when there are two cluster IPs or families")
		}
		return
	}
	if before.has() && (len(before.ips) == 2 && len(s.ips) == 1 || len(before.families) == 2 && len(s.families) == 1) {
		problems.Invalid(atPolicy, s.policy, "must be 'SingleStack' to release the secondary cluster IP or family")
	}
}

// unchangeable checks that addresses and families do not change once they are set.
func (s *stack) unchangeable(before stack, problems *field.Errors) {
	if before.external || len(before.ips) == 0 || s.headless && before.headless {
		return
	}
	const why = "may not change once set"
	for i, ip := range before.ips {
		if i < len(s.ips) && s.ips[i] != ip || i == 0 && len(s.ips) == 0 {
			problems.Invalid(atIPs.Item(i), s.ips, why)
		}
	}
	if s.headless != before.headless {
		return
	}
	for i, family := range before.families {
		if i < len(s.families) && s.families[i] != family {
			problems.Invalid(atFamilies.Item(i), s.families, why)
		}
	}
}

// infer adds the families of requested addresses to a Service that does not specify them.
func (s *stack) infer(n Networks, problems *field.Errors) {
	for i, text := range s.ips {
		ip, err := netip.ParseAddr(text)
		if err != nil || i < len(s.families) {
			continue
		}
		family := familyOf(ip)
		if _, ok := n.of(family); !ok {
			problems.Invalid(atIPs.Item(i), s.ips, family+" is not configured on this cluster")
		}
		s.families = append(s.families, family)
	}
}

// freely sets the families of a Service that has neither addresses nor a selector,
// regardless of the networks.
func (s *stack) freely(n Networks) {
	if len(s.families) == 0 {
		s.families = []string{n[0].family()}
	}
	if len(s.families) == 1 && s.policy != singleStack {
		s.families = append(s.families, otherFamily(s.families[0]))
	}
}

// available checks the families against the networks, and completes them.
func (s *stack) available(n Networks, problems *field.Errors) {
	if s.policy == requireDualStack && len(n) < 2 {
		problems.Invalid(atPolicy, s.policy, "this cluster is not configured for dual-stack services")
	}
	for i, family := range s.families {
		if _, ok := n.of(family); !ok {
			problems.Invalid(atFamilies.Item(i), family, "not configured on this cluster")
		}
	}
	if len(s.families) == 0 {
		s.families = []string{n[0].family()}
	}
	if s.policy != singleStack && len(s.families) == 1 && len(n) == 2 {
		s.families = append(s.families, otherFamily(s.families[0]))
	}
}
