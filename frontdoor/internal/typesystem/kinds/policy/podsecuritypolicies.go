package policy

import (
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"k8s.io/apimachinery/pkg/util/validation"
)

// securityPolicy checks that default and allowed capabilities are not dropped, that
// privilege escalation is only the default if it is allowed, and that ranges ascend.
func securityPolicy(c *rules.Check, m, _ map[string]any, at *field.Path) {
	dropped := map[string]bool{}
	for _, capability := range rules.Texts(m, "requiredDropCapabilities") {
		dropped[capability] = true
	}
	for _, name := range [...]string{"defaultAddCapabilities", "allowedCapabilities"} {
		for i, capability := range rules.Texts(m, name) {
			if dropped[capability] {
				c.Invalid(at.Field(name).Item(i), capability, "capability is also listed in requiredDropCapabilities")
			}
		}
	}
	if m["allowPrivilegeEscalation"] == false && m["defaultAllowPrivilegeEscalation"] == true {
		c.Invalid(at.Field("defaultAllowPrivilegeEscalation"), true, "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true")
	}
	for _, name := range [...]string{"hostPorts", "fsGroup", "runAsUser", "runAsGroup", "supplementalGroups"} {
		below, ranges := at.Field(name), rules.Objects(m, name)
		if of := rules.Object(m, name); of != nil {
			below, ranges = below.Field("ranges"), rules.Objects(of, "ranges")
		}
		for i, span := range ranges {
			if rules.Number(span, "min") > rules.Number(span, "max") {
				c.Invalid(below.Item(i), span, "min cannot be greater than max")
			}
		}
	}
}

// policyRuntimeClasses checks that "*" is the only name if present, and that the default
// class is allowed.
func policyRuntimeClasses(c *rules.Check, m, _ map[string]any, at *field.Path) {
	const all = "*"
	names, at := rules.Texts(m, "allowedRuntimeClassNames"), at.Field("allowedRuntimeClassNames")
	for i, name := range names {
		if name != all {
			c.Must(validation.IsDNS1123Subdomain, name, at.Item(i))
		}
	}
	c.Unique(names, at)
	if slices.Contains(names, all) && len(names) > 1 {
		c.Invalid(at, names, "if '*' is present, must not specify other RuntimeClass names")
	}
	if name := rules.Text(m, "defaultRuntimeClassName"); name != "" && !slices.Contains(names, name) && !slices.Contains(names, all) {
		c.Required(at, fmt.Sprintf("default %q must be allowed", name))
	}
}
