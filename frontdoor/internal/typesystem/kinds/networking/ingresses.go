package networking

import (
	"net/netip"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"k8s.io/apimachinery/pkg/util/validation"
)

func ingressRules(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(m, "rules")) == 0 && m["defaultBackend"] == nil && m["backend"] == nil {
		c.Invalid(at, rules.List(m, "rules"), "either `defaultBackend` or `rules` must be specified")
	}
}

// tlsSecrets validates the names of Secrets. Older versions do not validate them, so an
// Ingress that has an invalid one may keep it.
func tlsSecrets(c *rules.Check, m, old map[string]any, at *field.Path) {
	for _, tls := range rules.Objects(old, "tls") {
		if name := rules.Text(tls, "secretName"); name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return
		}
	}
	for i, tls := range rules.Objects(m, "tls") {
		c.Must(validation.IsDNS1123Subdomain, rules.Text(tls, "secretName"), at.Field("tls").Item(i).Field("secretName"))
	}
}

// ingressClass checks that a new Ingress does not set both ingressClassName and the
// annotation that it replaces.
// classField is the first release that warns of the annotation.
var classField, _ = release.Of("1.22")

func ingressClass(c *rules.Check, m, old map[string]any, at *field.Path) {
	name := c.Vocabulary.Qualified("", "ingress.class")
	_, annotated := rules.Object(m, "metadata", "annotations")[name]
	if old == nil && annotated && rules.Object(m, "spec")["ingressClassName"] != nil {
		c.Invalid((&field.Path{Name: "annotations"}).Field(name), rules.Object(m, "metadata", "annotations")[name],
			"can not be set when the class field is also set")
	}
	if old == nil && annotated && rules.Object(m, "spec")["ingressClassName"] == nil && !c.Release.Before(classField) {
		c.Warn("annotation " + field.Display(name) + " is deprecated, please use 'spec.ingressClassName' instead")
	}
}

// ingressPath checks that paths of type Exact and Prefix are absolute and clean.
func ingressPath(c *rules.Check, m, _ map[string]any, at *field.Path) {
	kind, value := rules.Text(m, "pathType"), rules.Text(m, "path")
	if kind != "Exact" && kind != "Prefix" {
		return
	}
	at = at.Field("path")
	if value == "" {
		c.Invalid(at, value, "must be an absolute path")
	}
	for _, part := range [...]string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(value, part) {
			c.Invalid(at, value, "must not contain '"+part+"'")
		}
	}
	for _, end := range [...]string{"/..", "/."} {
		if strings.HasSuffix(value, end) {
			c.Invalid(at, value, "cannot end with '"+end+"'")
		}
	}
}

// ingressHost checks that a host is a DNS name and not an IP address.
func ingressHost(c *rules.Check, m, _ map[string]any, at *field.Path) {
	host := rules.Text(m, "host")
	if _, err := netip.ParseAddr(host); err == nil {
		c.Invalid(at.Field("host"), host, "must be a DNS name, not an IP address")
		return
	}
	c.Must(format.DNSName, host, at.Field("host"))
}

// oldIngressBackend has the rules for backends in older versions, where typed clients
// always write a port.
func oldIngressBackend(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name, port := rules.Text(m, "serviceName"), m["servicePort"]
	unset := rules.Empty(port) || port == int64(0)
	if m["resource"] != nil {
		if name != "" || !unset {
			c.Invalid(at, "", "cannot set both resource and service backends")
		}
		backendObject(c, m, at)
		return
	}
	if name == "" {
		c.Required(at.Field("serviceName"), "")
	}
	c.Must(validation.IsDNS1035Label, name, at.Field("serviceName"))
	if unset {
		c.Required(at.Field("servicePort"), "port name or number is required")
	} else {
		checkPort(c, port, at.Field("servicePort"))
	}
}

// checkPort validates the name or number of a port.
func checkPort(c *rules.Check, port any, at *field.Path) {
	name, _ := port.(string)
	c.Must(validation.IsValidPortName, name, at)
	if number, ok := rules.Whole(port); ok {
		for _, problem := range validation.IsValidPortNum(int(number)) {
			c.Invalid(at, number, problem)
		}
	}
}

// ingressBackend checks that a backend is either a Service or another object.
func ingressBackend(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch {
	case m["service"] != nil && m["resource"] != nil:
		c.Invalid(at, "", "cannot set both resource and service backends")
	case m["resource"] != nil:
		backendObject(c, m, at)
	case m["service"] != nil:
		backendPort(c, rules.Object(m, "service", "port"), at)
	default:
		c.Invalid(at, "", "resource or service backend is required")
	}
}

// backendPort checks that the port of a Service has either a name or a number.
func backendPort(c *rules.Check, port map[string]any, at *field.Path) {
	name, number := rules.Text(port, "name"), rules.Number(port, "number")
	switch {
	case name != "" && number != 0:
		c.Invalid(at, "", "cannot set both port name & port number")
	case name == "" && number == 0:
		c.Required(at, "port name or number is required")
	case name == "":
		checkPort(c, number, at.Field("service").Field("port").Field("number"))
	default:
		c.Must(validation.IsValidPortName, name, at.Field("service").Field("port").Field("name"))
	}
}

// backendObject validates the reference to another object.
func backendObject(c *rules.Check, m map[string]any, at *field.Path) {
	object, at := rules.Object(m, "resource"), at.Field("resource")
	if group, given := object["apiGroup"].(string); given {
		for _, problem := range validation.IsDNS1123Subdomain(group) {
			c.Invalid(at.Field("apiGroup"), group, problem)
		}
	}
	for _, name := range [...]string{"kind", "name"} {
		c.Must(format.PathSegment, rules.Text(object, name), at.Field(name))
	}
}

// classParameters checks that the namespace of parameters matches their scope.
func classParameters(c *rules.Check, m, _ map[string]any, at *field.Path) {
	namespace, given := m["namespace"].(string)
	at = at.Field("namespace")
	switch scope := rules.Text(m, "scope"); {
	case scope == "Namespace" && !given:
		c.Required(at, "`parameters.scope` is set to 'Namespace'")
	case scope == "Namespace":
		for _, problem := range validation.IsDNS1123Label(namespace) {
			c.Invalid(at, namespace, problem)
		}
	case scope == "Cluster" && given:
		c.Forbidden(at, "`parameters.scope` is set to 'Cluster'")
	case scope == "" && given:
		c.Forbidden(at, "`parameters.scope` is not set")
	}
}
