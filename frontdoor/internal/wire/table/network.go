package table

import (
	"cmp"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/wire/rawjson"
)

func cutNonEmpty(s, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	return rest, ok && rest != ""
}

func orNone(texts []string) string { return cmp.Or(strings.Join(texts, ","), none) }

func serviceExternalIP(o *object) any {
	external := texts(o.spec.Get("externalIPs"))
	switch o.spec.Get("type").String() {
	case "LoadBalancer":
		if all := append(balancerAddresses(o), external...); len(all) > 0 {
			return strings.Join(all, ",")
		}
		return "<pending>"
	case "ExternalName":
		return o.spec.Get("externalName").String()
	}
	return orNone(external)
}

func texts(list rawjson.Value) []string {
	var all []string
	for item := range list.Items() {
		all = append(all, item.Text())
	}
	return all
}

func balancerAddresses(o *object) []string {
	var addresses []string
	for i := range o.status.Get("loadBalancer", "ingress").Items() {
		if a := cmp.Or(i.Get("ip").String(), i.Get("hostname").String()); a != "" {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

func loadBalancerAddress(o *object) any { return strings.Join(balancerAddresses(o), ",") }

func servicePorts(o *object) any {
	var ports []string
	for p := range o.spec.Get("ports").Items() {
		text := p.Get("port").Text()
		if node := p.Get("nodePort").Int(); node != 0 {
			text += ":" + count(int(node))
		}
		ports = append(ports, text+"/"+cmp.Or(p.Get("protocol").String(), "TCP"))
	}
	return orNone(ports)
}

func ingressClass(o *object) any {
	return cmp.Or(o.spec.Get("ingressClassName").String(), none)
}

func ingressHosts(o *object) any {
	var hosts []string
	seen := map[string]bool{}
	for rule := range o.spec.Get("rules").Items() {
		if host := rule.Get("host").String(); host != "" && !seen[host] {
			seen[host] = true
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return "*"
	}
	return atMost(3, hosts)
}

func ingressPorts(o *object) any {
	if o.spec.Get("tls").Len() > 0 {
		return "80, 443"
	}
	return "80"
}

func endpoints(o *object) any {
	var all []string
	for subset := range o.Get("subsets").Items() {
		ports := subset.Get("ports")
		for address := range subset.Get("addresses").Items() {
			ip := address.Get("ip").String()
			if ports.Len() == 0 {
				all = append(all, ip)
			}
			for port := range ports.Items() {
				all = append(all, hostPort(ip, port.Get("port").Text()))
			}
		}
	}
	if o.Get("subsets").Len() == 0 {
		return none
	}
	return atMost(3, all)
}

func hostPort(ip, port string) string {
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return ip + ":" + port
}

func slicePorts(o *object) any {
	var ports []string
	for p := range o.Get("ports").Items() {
		ports = append(ports, cmp.Or(p.Get("port").Text(), p.Get("name").String(), "*"))
	}
	return cmp.Or(atMost(3, ports), unset)
}

func sliceEndpoints(o *object) any {
	var all []string
	for endpoint := range o.Get("endpoints").Items() {
		all = append(all, texts(endpoint.Get("addresses"))...)
	}
	return cmp.Or(atMost(3, all), unset)
}
