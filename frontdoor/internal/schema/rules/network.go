package rules

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
)

// servicePorts: all but headless and external services have ports, and several
// ports need names.
func servicePorts(c *Check, m, _ map[string]any, at *field.Path) {
	ports := objectsOf(m, "ports")
	headless := textOf(m, "clusterIP") == "None"
	if len(ports) == 0 && !headless && m["type"] != "ExternalName" {
		c.Required(at.Field("ports"), "")
	}
	names := map[string]bool{}
	for i, port := range ports {
		name := textOf(port, "name")
		where := at.Field("ports").Item(i).Field("name")
		switch {
		case name == "" && len(ports) > 1:
			c.Required(where, "")
		case name != "" && names[name]:
			c.Duplicate(where, name)
		}
		names[name] = true
	}
}

// serviceType: some fields belong to some types.
func serviceType(c *Check, m, _ map[string]any, at *field.Path) {
	kind := textOf(m, "type")
	if kind == "ExternalName" {
		name := strings.TrimSuffix(textOf(m, "externalName"), ".")
		if name == "" {
			c.Required(at.Field("externalName"), "")
		}
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			if name != "" {
				c.Invalid(at.Field("externalName"), name, problem)
			}
		}
		if address := textOf(m, "clusterIP"); address != "" {
			c.Forbidden(at.Field("clusterIP"), "may not be set for ExternalName services")
		}
	}
	outside := kind == "NodePort" || kind == "LoadBalancer"
	if !outside && textOf(m, "externalTrafficPolicy") != "" {
		c.Forbidden(at.Field("externalTrafficPolicy"), "may only be set for externally-accessible services")
	}
	if kind != "LoadBalancer" && len(listOf(m, "loadBalancerSourceRanges")) > 0 {
		c.Forbidden(at.Field("loadBalancerSourceRanges"), "may only be used when `type` is 'LoadBalancer'")
	}
	if m["sessionAffinity"] == "None" && m["sessionAffinityConfig"] != nil {
		c.Forbidden(at.Field("sessionAffinityConfig"), "must not be set when session affinity is None")
	}
	for i, port := range objectsOf(m, "ports") {
		if !outside && numberOf(port, "nodePort") != 0 {
			c.Forbidden(at.Field("ports").Item(i).Field("nodePort"), "may not be used when `type` is '"+kind+"'")
		}
	}
}

// clusterAddress: the address of a service is an IP or None, and stays.
func clusterAddress(c *Check, m, old map[string]any, at *field.Path) {
	address := textOf(m, "clusterIP")
	if address != "" && address != "None" {
		if _, err := netip.ParseAddr(address); err != nil {
			c.Invalid(at.Field("clusterIPs").Item(0), address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
		}
	}
	before := textOf(old, "clusterIP")
	if before != "" && address != "" && address != before && old["type"] != "ExternalName" && m["type"] != "ExternalName" {
		c.Invalid(at.Field("clusterIPs").Item(0), address, "may not change once set")
	}
	if all := listOf(m, "clusterIPs"); len(all) > 0 && all[0] != address {
		c.Invalid(at.Field("clusterIPs"), all, "first value must match `clusterIP`")
	}
}

func ingressRules(c *Check, m, _ map[string]any, at *field.Path) {
	if len(listOf(m, "rules")) == 0 && m["defaultBackend"] == nil && m["backend"] == nil {
		c.Invalid(at, listOf(m, "rules"), "either `defaultBackend` or `rules` must be specified")
	}
}

// ingressPath: paths that are matched as paths start with a slash and are clean.
func ingressPath(c *Check, m, _ map[string]any, at *field.Path) {
	kind, value := textOf(m, "pathType"), textOf(m, "path")
	if kind != "Exact" && kind != "Prefix" {
		return
	}
	if value == "" {
		c.Invalid(at.Field("path"), value, "must be an absolute path")
	}
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(value, part) {
			c.Invalid(at.Field("path"), value, "must not contain '"+part+"'")
		}
	}
}

func blockOrSelectors(c *Check, m, _ map[string]any, at *field.Path) {
	selects := m["podSelector"] != nil || m["namespaceSelector"] != nil
	switch {
	case m["ipBlock"] != nil && selects:
		c.Forbidden(at, "may not specify both ipBlock and another peer")
	case m["ipBlock"] == nil && !selects:
		c.Required(at, "must specify a peer")
	}
}

// claimStorage: a claim says how much it needs, and does not shrink.
func claimStorage(c *Check, m, old map[string]any, at *field.Path) {
	requests := objectOf(objectOf(m, "resources"), "requests")
	where := at.Field("resources").Field("requests").Entry("storage")
	asked, ok := requests["storage"]
	if !ok {
		c.Required(where, "")
		return
	}
	q := quantityOf(asked)
	if q.Sign() <= 0 {
		c.Invalid(where, asked, "must be greater than zero")
	}
	if before, had := objectOf(objectOf(old, "resources"), "requests")["storage"]; had {
		if less := quantityOf(before); q.Cmp(less) < 0 {
			c.Forbidden(where, "field can not be less than previous value")
		}
	}
}

func capacityStorage(c *Check, m, _ map[string]any, at *field.Path) {
	capacity := objectOf(m, "capacity")
	if value, ok := capacity["storage"]; !ok || len(capacity) != 1 {
		c.NotSupported(at.Field("capacity"), capacity, "storage")
	} else if q := quantityOf(value); q.Sign() <= 0 {
		c.Invalid(at.Field("capacity").Entry("storage"), value, "must be greater than zero")
	}
}
