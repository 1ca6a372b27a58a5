package serviceips

import (
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// The Service types other than ClusterIP.
const (
	nodePort     = "NodePort"
	loadBalancer = "LoadBalancer"
	externalName = "ExternalName"
)

// none is the cluster IP of a headless Service.
const none = "None"

var (
	atPorts      = (&field.Path{Name: "spec"}).Field("ports")
	atHealthPort = (&field.Path{Name: "spec"}).Field("healthCheckNodePort")
)

// held returns the claims of a Service's addresses.
func (a *Assigner) held(service map[string]any) []resource.Key {
	spec := specOf(service)
	var keys []resource.Key
	if s := stackOf(spec); s.has() {
		for _, ip := range s.ips {
			keys = append(keys, Network{}.claim(ip))
		}
	}
	for _, port := range portsOf(spec) {
		if n := tree.Number(port, "nodePort"); n != 0 {
			keys = append(keys, a.NodePorts.claim(strconv.FormatInt(n, 10)))
		}
	}
	if n := tree.Number(spec, "healthCheckNodePort"); n != 0 {
		keys = append(keys, a.NodePorts.claim(strconv.FormatInt(n, 10)))
	}
	return keys
}

// clusterIPs sets the IP families of a Service and returns the addresses that it needs.
func (m *Assignment) clusterIPs(spec, before map[string]any, networks Networks, problems *field.Errors) (needs []need) {
	s := stackOf(spec)
	s.settle(stackOf(before), networks.families(), problems)
	if len(problems.Causes()) > 0 {
		return nil
	}
	put(spec, "ipFamilyPolicy", s.policy)
	putTexts(spec, "ipFamilies", s.families)
	if s.external || s.headless {
		putTexts(spec, "clusterIPs", s.ips)
		return nil
	}
	for len(s.ips) < len(s.families) {
		s.ips = append(s.ips, "")
	}
	for i, ip := range s.ips {
		network := networks.space(s.families[i])
		if len(network) == 0 {
			continue // the address is in a network that is no longer configured
		}
		needs = append(needs, need{from: network, given: ip, at: atIPs, shown: s.ips, set: func(address string) {
			s.ips[i] = address
			putTexts(spec, "clusterIPs", s.ips)
			spec["clusterIP"] = s.ips[0]
		}})
	}
	putTexts(spec, "clusterIPs", s.ips)
	return needs
}

// nodePorts returns the node ports that a Service needs. Ports with the same number and
// different protocols share one.
func (m *Assignment) nodePorts(spec map[string]any, problems *field.Errors) (needs []need) {
	kind := typeOf(spec)
	if kind != nodePort && kind != loadBalancer {
		return nil
	}
	type binding struct {
		node     int64
		protocol string
	}
	used, open := map[binding]bool{}, map[int64][]map[string]any{}
	for i, port := range portsOf(spec) {
		node, protocol := tree.Number(port, "nodePort"), tree.Text(port, "protocol")
		if node == 0 {
			open[tree.Number(port, "port")] = append(open[tree.Number(port, "port")], port)
			continue
		}
		at := atPorts.Item(i).Field("nodePort")
		if used[binding{node, protocol}] {
			problems.Duplicate(at, node)
			continue
		}
		used[binding{node, protocol}] = true
		needs = append(needs, need{from: m.NodePorts, given: strconv.FormatInt(node, 10), at: at, shown: node})
	}
	if kind == loadBalancer && spec["allocateLoadBalancerNodePorts"] == false {
		return needs
	}
	for i, port := range portsOf(spec) {
		peers := open[tree.Number(port, "port")]
		if len(peers) == 0 {
			continue
		}
		delete(open, tree.Number(port, "port"))
		needs = append(needs, need{from: m.NodePorts, at: atPorts.Item(i).Field("nodePort"), set: func(address string) {
			for _, peer := range peers {
				putNumber(peer, "nodePort", address)
			}
		}})
	}
	return needs
}

// healthPort returns the health check port of a Service with externalTrafficPolicy
// Local.
func (m *Assignment) healthPort(spec, before map[string]any, problems *field.Errors) []need {
	given, had := tree.Number(spec, "healthCheckNodePort"), tree.Number(before, "healthCheckNodePort")
	switch {
	case !needsHealthPort(spec):
		if given != 0 {
			problems.Invalid(atHealthPort, given, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
		}
		return nil
	case needsHealthPort(before) && had != 0 && given != had:
		problems.Invalid(atHealthPort, given, "field is immutable")
		return nil
	}
	n := need{from: m.NodePorts, at: atHealthPort, shown: given, set: func(address string) { putNumber(spec, "healthCheckNodePort", address) }}
	if given != 0 {
		n.given = strconv.FormatInt(given, 10)
	}
	return []need{n}
}

func needsHealthPort(spec map[string]any) bool {
	return typeOf(spec) == loadBalancer && tree.Text(spec, "externalTrafficPolicy") == "Local"
}

// Accessors of a validated Service: absent values read as zero.

func specOf(service map[string]any) map[string]any {
	spec, ok := service["spec"].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return spec
}

func typeOf(spec map[string]any) string { return tree.Text(spec, "type") }

func portsOf(spec map[string]any) (ports []map[string]any) {
	list, _ := spec["ports"].([]any)
	for _, item := range list {
		port, _ := item.(map[string]any)
		ports = append(ports, port)
	}
	return ports
}

func put(m map[string]any, name, value string) {
	if value == "" {
		delete(m, name)
		return
	}
	m[name] = value
}

func putTexts(m map[string]any, name string, values []string) {
	if len(values) == 0 {
		delete(m, name)
		return
	}
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	m[name] = list
}

func putNumber(m map[string]any, name, value string) {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		m[name] = n
	}
}
