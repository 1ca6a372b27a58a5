package services

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/util/validation"
)

// sourceRanges validates the source ranges of a load balancer, in the field or in the
// annotation that preceded it.
func sourceRanges(c *rules.Check, m, _ map[string]any, at *field.Path) {
	ranges, where := rules.Texts(m, "loadBalancerSourceRanges"), at.Field("LoadBalancerSourceRanges") // as Kubernetes spells it in errors
	name := c.Vocabulary.Qualified("service.beta", "load-balancer-source-ranges")
	annotation, annotated := rules.Object(c.Root, "metadata", "annotations")[name].(string)
	if len(ranges) == 0 && !annotated {
		return
	}
	item := func(i int) *field.Path { return where.Item(i) }
	if len(ranges) == 0 {
		where = (&field.Path{Name: "metadata"}).Field("annotations").Entry(name)
		item = func(int) *field.Path { return where }
		if annotation = strings.TrimSpace(annotation); annotation != "" {
			ranges = strings.Split(annotation, ",")
		}
	}
	if m["type"] != "LoadBalancer" {
		c.Forbidden(where, "may only be used when `type` is 'LoadBalancer'")
	}
	for i, text := range ranges {
		if _, err := netip.ParsePrefix(strings.TrimSpace(text)); err != nil {
			c.Invalid(item(i), text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
		}
	}
}

// mixed reports whether ports have different protocols.
func mixed(ports []map[string]any) bool {
	return slices.ContainsFunc(ports, func(port map[string]any) bool { return port["protocol"] != ports[0]["protocol"] })
}

// balancerAddresses validates the addresses of a load balancer in an update of the status.
func balancerAddresses(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	if c.Subresource != "status" {
		return // only the subresource status changes them
	}
	wrong, points := "must be a valid IP address", rules.Objects(rules.Object(m, "status", "loadBalancer"), "ingress")
	if !c.Release.Before(release.V136) {
		wrong += ", (e.g. 10.9.8.7 or 2001:db8::ffff)"
	}
	spec, isService := rules.Object(m, "spec"), rules.Text(m, "kind") == "Service"
	if isService && spec["type"] != loadBalancer && !c.Release.Before(balancersOnly) {
		return // balancerModesFit refuses them
	}
	at := (&field.Path{Name: "status"}).Field("loadBalancer").Field("ingress")
	for i, point := range points {
		if ip := rules.Text(point, "ip"); ip != "" && !isIP(ip) {
			c.Invalid(at.Item(i).Field("ip"), ip, wrong)
		}
		host := rules.Text(point, "hostname")
		c.Must(validation.IsDNS1123Subdomain, host, at.Item(i).Field("hostname"))
		if isIP(host) {
			c.Invalid(at.Item(i).Field("hostname"), host, "must be a DNS name, not an IP address")
		}
	}
}

// balancersOnly is the first release in which only Services with a load balancer have its
// addresses.
var balancersOnly, _ = release.Of("1.30")

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// balancerModes defaults how the addresses of a load balancer deliver: to the cluster.
func balancerModes(m map[string]any, _ vocabulary.Vocabulary) {
	if rules.Object(m, "spec")["type"] != loadBalancer {
		return
	}
	for _, point := range rules.Objects(rules.Object(m, "status", "loadBalancer"), "ingress") {
		if rules.Text(point, "ip") != "" && point["ipMode"] == nil {
			point["ipMode"] = "VIP"
		}
	}
}

// balancerModesFit checks the modes in an update of the status: only addresses have one.
func balancerModesFit(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	if c.Subresource != "status" {
		return
	}
	at := (&field.Path{Name: "status"}).Field("loadBalancer").Field("ingress")
	points := rules.Objects(rules.Object(m, "status", "loadBalancer"), "ingress")
	if len(points) > 0 && rules.Object(m, "spec")["type"] != loadBalancer {
		c.Forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")
		return
	}
	for i, point := range points {
		mode, where := point["ipMode"], at.Item(i).Field("ipMode")
		switch ip := rules.Text(point, "ip"); {
		case mode == nil && ip != "":
			c.Required(where, "must be specified when `ip` is set")
		case mode == nil:
		case ip == "":
			c.Forbidden(where, "may not be specified when `ip` is not set")
		case mode != "VIP" && mode != "Proxy":
			c.NotSupported(where, rules.Text(point, "ipMode"), "Proxy", "VIP")
		}
	}
}
