package services

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/util/validation"
)

// loadBalancer is the type of Services with an external load balancer.
const loadBalancer = "LoadBalancer"

// nodeAgentPort is the kubelet's port, which must not be exposed.
const nodeAgentPort = 10250

// servicePorts checks that all but headless and ExternalName Services have ports, and that
// names are unique, and required if there are several ports.
func servicePorts(c *rules.Check, m, old map[string]any, at *field.Path) {
	ports, at := rules.Objects(m, "ports"), at.Field("ports")
	if len(ports) == 0 && rules.Text(m, "clusterIP") != "None" && m["type"] != "ExternalName" {
		c.Required(at, "")
	}
	names, taken := map[string]bool{}, map[string]bool{}
	for i, port := range ports {
		name, where := rules.Text(port, "name"), at.Item(i)
		switch {
		case name == "" && len(ports) > 1:
			c.Required(where.Field("name"), "")
		case name != "" && names[name]:
			c.Duplicate(where.Field("name"), name)
		}
		names[name] = true
		if rules.Number(port, "nodePort") != 0 {
			key := field.Display(port["nodePort"]) + "/" + rules.Text(port, "protocol")
			if taken[key] {
				c.Duplicate(where.Field("nodePort"), port["nodePort"])
			}
			taken[key] = true
		}
		if m["type"] == loadBalancer && rules.Number(port, "port") == nodeAgentPort {
			c.Invalid(where, port["port"], "may not expose port 10250 externally since it is used by kubelet")
		}
	}
	if m["type"] == loadBalancer && mixed(ports) && !mixed(rules.Objects(old, "ports")) && !c.On("MixedProtocolLBService") {
		c.Invalid(at, ports, "may not contain more than 1 protocol when type is 'LoadBalancer'")
	}
}

// serviceType checks that fields match the type.
func serviceType(c *rules.Check, m, old map[string]any, at *field.Path) {
	kind := rules.Text(m, "type")
	balanced := kind == loadBalancer
	externalTraffic(c, m, at)
	if hasNodePorts(m) && rules.Text(m, "clusterIP") == "None" {
		c.Invalid(at.Field("clusterIPs").Item(0), "None", "may not be set to 'None' for "+kind+" services")
	}
	for i, port := range rules.Objects(m, "ports") {
		if kind == "ClusterIP" && rules.Number(port, "nodePort") != 0 {
			c.Forbidden(at.Field("ports").Item(i).Field("nodePort"), "may not be used when `type` is 'ClusterIP'")
		}
	}
	class, classed := m["loadBalancerClass"].(string)
	if !balanced {
		const why = "may only be used when `type` is 'LoadBalancer'"
		forbid(c, m["allocateLoadBalancerNodePorts"], why, at.Field("allocateLoadBalancerNodePorts"))
		if classed {
			c.Forbidden(at.Field("loadBalancerClass"), why)
		}
		return
	}
	if was := rules.Text(old, "loadBalancerClass"); old["type"] == kind && was != class {
		c.Invalid(at.Field("loadBalancerClass"), m["loadBalancerClass"], "may not change once set")
	}
	if classed {
		for _, problem := range validation.IsQualifiedName(class) {
			c.Invalid(at.Field("loadBalancerClass"), class, problem)
		}
	}
}

// externalTraffic checks the policy for traffic from outside, and the port for health checks
// that Local needs.
func externalTraffic(c *rules.Check, m map[string]any, at *field.Path) {
	policy, outside := rules.Text(m, "externalTrafficPolicy"), isExternal(m, c.Release)
	if policy != "" && !outside {
		c.Invalid(at.Field("externalTrafficPolicy"), policy, "may only be set for externally-accessible services")
	}
	if policy != "" && policy != "Cluster" && policy != "Local" && (outside || c.Release.Before(policyOnce)) {
		c.NotSupported(at.Field("externalTrafficPolicy"), policy, "Cluster", "Local")
	}
	port, at := rules.Number(m, "healthCheckNodePort"), at.Field("healthCheckNodePort")
	switch {
	case port == 0:
	case !hasHealthPort(m):
		c.Invalid(at, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	default:
		for _, problem := range validation.IsValidPortNum(int(port)) {
			c.Invalid(at, port, problem)
		}
	}
}

// policyOnce is the first release that does not validate the policy of Services that are not
// accessible from outside, and policyOfIPs the first one in which externalIPs make them so.
var (
	policyOnce, _  = release.Of("1.22")
	policyOfIPs, _ = release.Of("1.29")
)

// isExternal reports whether a Service is accessible from outside of the cluster.
func isExternal(spec map[string]any, r release.Release) bool {
	return hasNodePorts(spec) || !r.Before(policyOfIPs) && hasExternalIPs(spec)
}

func hasExternalIPs(spec map[string]any) bool {
	return spec["type"] == "ClusterIP" && len(rules.List(spec, "externalIPs")) > 0
}

// policyOfExternalIPs defaults how traffic to external addresses is routed.
func policyOfExternalIPs(m map[string]any, _ vocabulary.Vocabulary) {
	if hasExternalIPs(m) && rules.Empty(m["externalTrafficPolicy"]) {
		m["externalTrafficPolicy"] = "Cluster"
	}
}

// forbid reports a value that is set.
func forbid(c *rules.Check, value any, why string, at *field.Path) {
	if !rules.Empty(value) {
		c.Forbidden(at, why)
	}
}

// externalName validates the name of an ExternalName Service, and that it has no addresses.
func externalName(c *rules.Check, m map[string]any, at *field.Path) {
	name := strings.TrimSuffix(rules.Text(m, "externalName"), ".")
	if name == "" {
		c.Required(at.Field("externalName"), "")
	}
	c.Must(validation.IsDNS1123Subdomain, name, at.Field("externalName"))
	for _, name := range [...]string{"clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
		forbid(c, m[name], "may not be set for ExternalName services", at.Field(name))
	}
}

// clusterAddress validates clusterIPs: None, or at most one IP per family. The first one is
// immutable.
func clusterAddress(c *rules.Check, m, old map[string]any, at *field.Path) {
	if m["type"] == "ExternalName" {
		externalName(c, m, at)
		return
	}
	address, all, at := rules.Text(m, "clusterIP"), rules.Texts(m, "clusterIPs"), at.Field("clusterIPs")
	if before := rules.Text(old, "clusterIP"); before != "" && address != "" && address != before && old["type"] != "ExternalName" {
		c.Invalid(at.Item(0), all, "may not change once set")
	}
	switch {
	case address == "" && len(all) > 0:
		c.Invalid(at, all, "must be empty when `clusterIP` is not specified")
	case address != "" && len(all) == 0:
		c.Required(at, "")
	case address != "" && all[0] != address:
		c.Invalid(at, all, "first value must match `clusterIP`")
	}
	if addressesOfFamilies(c, all, at) && (len(all) == 0 || all[0] != "None") {
		addressesOfTheirFamilies(c, all, rules.Texts(m, "ipFamilies"), at)
	}
}

// addressesOfFamilies validates addresses: None, or at most one per family. It reports
// whether they can be compared with the families.
func addressesOfFamilies(c *rules.Check, all []string, at *field.Path) bool {
	valid, ipv4 := true, 0
	for i, text := range all {
		if i == 0 && text == "None" {
			if len(all) > 1 {
				c.Invalid(at, all, "'None' must be the first and only value")
			}
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil {
			c.Invalid(at.Item(i), text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
			valid = false
		}
		if ip.Unmap().Is4() {
			ipv4++
		}
	}
	if len(all) > 2 {
		c.Invalid(at, all, "may only hold up to 2 values")
	}
	if !valid || len(all) < 2 || all[0] == "None" {
		return valid
	}
	if len(all)-ipv4 != 1 || ipv4 != 1 {
		c.Invalid(at, all, "may specify no more than one IP for each IP family")
	}
	return len(all) == 2
}

// addressesOfTheirFamilies checks that addresses belong to the given families.
func addressesOfTheirFamilies(c *rules.Check, all, families []string, at *field.Path) {
	for i, text := range all[:min(len(all), len(families))] {
		ip, _ := netip.ParseAddr(text)
		if family := families[i]; ip.Unmap().Is4() && family == "IPv6" || !ip.Unmap().Is4() && family == "IPv4" {
			c.Invalid(at.Item(i), text, "expected an "+family+" value as indicated by `ipFamilies["+strconv.Itoa(i)+"]`")
		}
	}
}

func serviceExternalIPs(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, address := range rules.Texts(m, "externalIPs") {
		CheckNotSpecialIP(c, address, at.Field("externalIPs").Item(i))
	}
}

// CheckNotSpecialIP checks that an address can be that of a host. Invalid addresses are
// reported elsewhere.
func CheckNotSpecialIP(c *rules.Check, address string, at *field.Path) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return
	}
	switch ip = ip.Unmap(); {
	case ip.IsUnspecified():
		c.Invalid(at, address, "may not be unspecified ("+address+")")
	case ip.IsLoopback():
		c.Invalid(at, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	case ip.IsLinkLocalUnicast():
		c.Invalid(at, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	case ip.IsLinkLocalMulticast():
		c.Invalid(at, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	}
}

// noAffinityConfig removes the configuration of session affinity if there is none.
func noAffinityConfig(m map[string]any, _ vocabulary.Vocabulary) {
	if m["sessionAffinity"] == "None" {
		delete(m, "sessionAffinityConfig")
	}
}

func defaultTargetPort(m map[string]any, _ vocabulary.Vocabulary) {
	if target := m["targetPort"]; target == nil || target == "" || target == int64(0) {
		if port, ok := m["port"]; ok {
			m["targetPort"] = port
		}
	}
}
