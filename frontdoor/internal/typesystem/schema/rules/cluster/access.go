package cluster

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// policyRule: a rule of a role is about resources of groups, or about paths.
func policyRule(c *rules.Check, m, _ map[string]any, at *field.Path) {
	paths, resources, groups := rules.List(m, "nonResourceURLs"), rules.List(m, "resources"), rules.List(m, "apiGroups")
	switch {
	case len(paths) > 0 && (len(resources) > 0 || len(groups) > 0 || len(rules.List(m, "resourceNames")) > 0):
		c.Invalid(at.Field("nonResourceURLs"), paths, "rules cannot apply to both regular resources and non-resource URLs")
	case len(paths) > 0:
	default:
		if len(groups) == 0 {
			c.Required(at.Field("apiGroups"), "resource rules must supply at least one api group")
		}
		if len(resources) == 0 {
			c.Required(at.Field("resources"), "resource rules must supply at least one resource")
		}
	}
}

// namespacedRules: a path is in no namespace.
func namespacedRules(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, rule := range rules.Objects(m, "rules") {
		if paths := rules.List(rule, "nonResourceURLs"); len(paths) > 0 {
			c.Invalid(at.Field("rules").Item(i).Field("nonResourceURLs"), paths, "namespaced rules cannot apply to non-resource URLs")
		}
	}
}

func aggregation(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if sum := rules.Object(m, "aggregationRule"); sum != nil && len(rules.List(sum, "clusterRoleSelectors")) == 0 {
		c.Required(at.Field("aggregationRule").Field("clusterRoleSelectors"), "at least one clusterRoleSelector required if aggregationRule is non-nil")
	}
}

// roleGroupIs: a binding is to a role of its own group, and one that holds in the
// cluster is to a role that does.
func roleGroupIs(c *rules.Check, m, old map[string]any, at *field.Path) {
	role, at := rules.Object(m, "roleRef"), at.Field("roleRef")
	if group := c.Vocabulary.Group("rbac.authorization."); rules.Text(role, "apiGroup") != group {
		c.NotSupported(at.Field("apiGroup"), rules.Text(role, "apiGroup"), group)
	}
	kinds := []string{"Role", "ClusterRole"}
	if c.Root["kind"] == "ClusterRoleBinding" {
		kinds = kinds[1:]
	}
	if kind := rules.Text(role, "kind"); !slices.Contains(kinds, kind) {
		c.NotSupported(at.Field("kind"), kind, kinds...)
	}
	if old != nil && !rules.Same(role, old["roleRef"]) {
		c.Invalid(at, role, "cannot change roleRef")
	}
}

// subject: users and groups belong to the group of roles, service accounts to none,
// but to a namespace: that of the binding, if it is in one and names no other.
func subject(c *rules.Check, m, _ map[string]any, at *field.Path) {
	group := rules.Text(m, "apiGroup")
	switch m["kind"] {
	case "ServiceAccount":
		c.Must(validation.IsDNS1123Subdomain, rules.Text(m, "name"), at.Field("name"))
		if group != "" {
			c.NotSupported(at.Field("apiGroup"), group, "")
		}
		if rules.Text(m, "namespace") == "" && c.Root["kind"] == "ClusterRoleBinding" {
			c.Required(at.Field("namespace"), "")
		}
	case "User", "Group":
		if own := c.Vocabulary.Group("rbac.authorization."); group != own {
			c.NotSupported(at.Field("apiGroup"), group, own)
		}
	default:
		c.NotSupported(at.Field("kind"), rules.Text(m, "kind"), "ServiceAccount", "User", "Group")
	}
}

func roleGroup(m map[string]any, v vocabulary.Vocabulary) {
	reference := rules.Object(m, "roleRef")
	if reference != nil && rules.Empty(reference["apiGroup"]) {
		reference["apiGroup"] = v.Group("rbac.authorization.")
	}
}

func subjectGroup(m map[string]any, v vocabulary.Vocabulary) {
	if !rules.Empty(m["apiGroup"]) {
		return
	}
	switch m["kind"] {
	case "User", "Group":
		m["apiGroup"] = v.Group("rbac.authorization.")
	}
}

// securityPolicy: what containers may gain by default must be allowed, and not be
// taken away at once.
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

// policyRuntimeClasses: the runtime classes of a policy are all or some, and the one
// by default is among them.
func policyRuntimeClasses(c *rules.Check, m, _ map[string]any, at *field.Path) {
	const all = "*"
	names, at := rules.Texts(m, "allowedRuntimeClassNames"), at.Field("allowedRuntimeClassNames")
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if name != all {
			c.Must(validation.IsDNS1123Subdomain, name, at.Item(i))
		}
		if seen[name] {
			c.Duplicate(at.Item(i), name)
		}
		seen[name] = true
	}
	if slices.Contains(names, all) && len(names) > 1 {
		c.Invalid(at, names, "if '*' is present, must not specify other RuntimeClass names")
	}
	if usual := rules.Text(m, "defaultRuntimeClassName"); usual != "" && !slices.Contains(names, usual) && !slices.Contains(names, all) {
		c.Required(at, fmt.Sprintf("default %q must be allowed", usual))
	}
}
