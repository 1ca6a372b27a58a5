// Package network holds the rules of what leads to pods: services, ingresses,
// policies and endpoints. Which addresses are free, others decide. It serves what
// users of those kinds expect.
package network

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Comparisons are those that the overlay may name.
var Comparisons = map[string]rules.Comparison{
	"service ports":              servicePorts,
	"fields of the service type": serviceType,
	"cluster address":            clusterAddress,
	"addresses from outside":     externalIPs,
	"rules or a default backend": ingressRules,
	"class in one place":         ingressClass,
	"path of its type":           ingressPath,
	"host is a name":             hostName,
	"service or resource":        oldBackend,
	"service port of a backend":  backendPort,
	"parameters in their scope":  classParameters,
	"block or selectors":         blockOrSelectors,
	"except is in the block":     exceptions,
	"range of ports":             portRange,
	"subset with addresses":      subset,
	"address of an endpoint":     endpointAddress,
	"addresses of their type":    sliceAddresses,
}

// Derivations are those that the overlay may name.
var Derivations = map[string]rules.Derivation{
	"target port is port":                targetPort,
	"egress when there are egress rules": policyTypes,
}

// nodeAgentPort is that of the agent on each node, which is not for the world.
const nodeAgentPort = 10250

// servicePorts: all but headless and external services have ports, and several
// ports need names.
func servicePorts(c *rules.Check, m, _ map[string]any, at *field.Path) {
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
		if m["type"] == "LoadBalancer" && rules.Number(port, "port") == nodeAgentPort {
			c.Invalid(where, port["port"], "may not expose port 10250 externally since it is used by kubelet")
		}
	}
}

// serviceType: some fields belong to some types.
func serviceType(c *rules.Check, m, old map[string]any, at *field.Path) {
	kind := rules.Text(m, "type")
	if kind == "ExternalName" {
		externalName(c, m, at)
	}
	outside, balanced := kind == "NodePort" || kind == "LoadBalancer", kind == "LoadBalancer"
	if !outside {
		forbid(c, m["externalTrafficPolicy"], "may only be set for externally-accessible services", at.Field("externalTrafficPolicy"))
		for i, port := range rules.Objects(m, "ports") {
			if rules.Number(port, "nodePort") != 0 {
				c.Forbidden(at.Field("ports").Item(i).Field("nodePort"), "may not be used when `type` is '"+kind+"'")
			}
		}
	}
	if !balanced {
		for _, name := range [...]string{"loadBalancerSourceRanges", "loadBalancerClass", "allocateLoadBalancerNodePorts"} {
			forbid(c, m[name], "may only be used when `type` is 'LoadBalancer'", at.Field(name))
		}
	} else if was := rules.Text(old, "loadBalancerClass"); old["type"] == kind && was != rules.Text(m, "loadBalancerClass") {
		c.Invalid(at.Field("loadBalancerClass"), m["loadBalancerClass"], "may not change once set")
	}
	if rules.Number(m, "healthCheckNodePort") != 0 && (!balanced || m["externalTrafficPolicy"] != "Local") {
		c.Invalid(at.Field("healthCheckNodePort"), m["healthCheckNodePort"],
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	}
	if m["sessionAffinity"] == "None" {
		forbid(c, m["sessionAffinityConfig"], "must not be set when session affinity is None", at.Field("sessionAffinityConfig"))
	}
}

// forbid notes a value that is given.
func forbid(c *rules.Check, value any, why string, at *field.Path) {
	if !rules.Empty(value) {
		c.Forbidden(at, why)
	}
}

// externalName: a service can be another name for one elsewhere.
func externalName(c *rules.Check, m map[string]any, at *field.Path) {
	name := strings.TrimSuffix(rules.Text(m, "externalName"), ".")
	if name == "" {
		c.Required(at.Field("externalName"), "")
	}
	c.Must(validation.IsDNS1123Subdomain, name, at.Field("externalName"))
	forbid(c, m["clusterIP"], "may not be set for ExternalName services", at.Field("clusterIP"))
	forbid(c, m["clusterIPs"], "may not be set for ExternalName services", at.Field("clusterIPs"))
}

// clusterAddress: the address of a service is an IP or None, and stays.
func clusterAddress(c *rules.Check, m, old map[string]any, at *field.Path) {
	at, address := at.Field("clusterIPs"), rules.Text(m, "clusterIP")
	if address != "" && address != "None" {
		if _, err := netip.ParseAddr(address); err != nil {
			c.Invalid(at.Item(0), address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
		}
	}
	before := rules.Text(old, "clusterIP")
	if before != "" && address != "" && address != before && old["type"] != "ExternalName" && m["type"] != "ExternalName" {
		c.Invalid(at.Item(0), address, "may not change once set")
	}
	all := rules.List(m, "clusterIPs")
	if len(all) > 0 && all[0] != address {
		c.Invalid(at, all, "first value must match `clusterIP`")
	}
	if len(all) > 1 && all[0] == "None" {
		c.Invalid(at.Item(0), "None", "'None' must be the first and only value")
	}
}

func externalIPs(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, address := range rules.Texts(m, "externalIPs") {
		ordinary(c, address, at.Field("externalIPs").Item(i))
	}
}

// ordinary checks that an address may be that of a machine. One that is none has its
// fault reported elsewhere.
func ordinary(c *rules.Check, address string, at *field.Path) {
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

func targetPort(m map[string]any, _ vocabulary.Vocabulary) {
	if target := m["targetPort"]; target == nil || target == "" || target == int64(0) {
		if port, ok := m["port"]; ok {
			m["targetPort"] = port
		}
	}
}
