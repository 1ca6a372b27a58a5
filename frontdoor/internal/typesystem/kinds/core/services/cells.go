package services

import (
	"cmp"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showServiceExternalIP(o *cell.Object) any {
	external := cell.Texts(o.Spec.Get("externalIPs"))
	switch o.Spec.Get("type").String() {
	case "LoadBalancer":
		if all := append(loadBalancerPoints(o), external...); len(all) > 0 {
			return strings.Join(all, ",")
		}
		return "<pending>"
	case "ExternalName":
		return o.Spec.Get("externalName").String()
	}
	return cell.OrNone(external)
}

func showServicePorts(o *cell.Object) any {
	var ports []string
	for p := range o.Spec.Get("ports").Items() {
		text := p.Get("port").Text()
		if node := p.Get("nodePort").Int(); node != 0 {
			text += ":" + cell.Count(int(node))
		}
		ports = append(ports, text+"/"+cmp.Or(p.Get("protocol").String(), "TCP"))
	}
	return cell.OrNone(ports)
}

func showEndpoints(o *cell.Object) any {
	var all []string
	for subset := range o.Get("subsets").Items() {
		ports, addresses := subset.Get("ports"), subset.Get("addresses")
		for address := range addresses.Items() {
			if ports.Len() == 0 {
				all = append(all, address.Get("ip").String())
			}
		}
		for port := range ports.Items() {
			for address := range addresses.Items() {
				all = append(all, hostPort(address.Get("ip").String(), port.Get("port").Text()))
			}
		}
	}
	if o.Get("subsets").Len() == 0 {
		return cell.None
	}
	return cell.AtMost(3, all)
}

func hostPort(ip, port string) string {
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return ip + ":" + port
}

// showLoadBalancerAddress returns the addresses of the load balancer of a Service or
// Ingress.
func showLoadBalancerAddress(o *cell.Object) any { return strings.Join(loadBalancerPoints(o), ",") }

// loadBalancerPoints returns the addresses and hostnames in status.loadBalancer.
func loadBalancerPoints(o *cell.Object) []string {
	var addresses []string
	for i := range o.Status.Get("loadBalancer", "ingress").Items() {
		if a := cmp.Or(i.Get("ip").String(), i.Get("hostname").String()); a != "" {
			addresses = append(addresses, a)
		}
	}
	return addresses
}
