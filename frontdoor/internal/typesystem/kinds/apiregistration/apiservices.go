package apiregistration

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"k8s.io/apimachinery/pkg/util/validation"
)

// apiServiceName checks that the name of an APIService is <version>.<group>.
func apiServiceName(c *rules.Check, m, _ map[string]any, at *field.Path) {
	spec := rules.Object(m, "spec")
	version, group := rules.Text(spec, "version"), rules.Text(spec, "group")
	want := version + "." + group
	c.Name(func(name string) []string {
		if problems := format.PathSegment(name); len(problems) > 0 || name == want {
			return problems
		}
		return []string{"must be `spec.version+\".\"+spec.group`: " + field.Display(want)}
	})
	at = at.Field("spec")
	for _, problem := range validation.IsDNS1035Label(version) {
		c.Invalid(at.Field("version"), version, problem)
	}
	if group == "" && version != "v1" {
		c.Required(at.Field("group"), "only v1 may have an empty group and it better be legacy kube")
	}
}

// apiServiceTrust checks that caBundle and insecureSkipTLSVerify are not both set, and
// neither of them for a local APIService.
func apiServiceTrust(c *rules.Check, m, _ map[string]any, at *field.Path) {
	bundle, insecure := !rules.Empty(m["caBundle"]), m["insecureSkipTLSVerify"] == true
	if service := rules.Object(m, "service"); service != nil {
		for _, name := range [...]string{"namespace", "name"} {
			if rules.Text(service, name) == "" {
				c.Required(at.Field("service").Field(name), "")
			}
		}
		if bundle && insecure {
			c.Invalid(at.Field("insecureSkipTLSVerify"), true, "may not be true if caBundle is present")
		}
		return
	}
	if bundle {
		c.Invalid(at.Field("caBundle"), "<certificate data>", "local APIServices may not have a caBundle")
	}
	if insecure {
		c.Invalid(at.Field("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify")
	}
}

// apiServiceStatus checks the status of conditions.
func apiServiceStatus(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, condition := range rules.ConditionsOf(m, "") {
		switch state := rules.Text(condition, "status"); state {
		case "True", "False", "Unknown":
		default:
			c.NotSupported(at.Field("status").Field("conditions").Item(i).Field("status"), state, "True", "False", "Unknown")
		}
	}
}
