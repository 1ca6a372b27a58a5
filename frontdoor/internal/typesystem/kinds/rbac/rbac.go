package rbac

import (
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/util/validation"
)

// policyRule checks that a rule applies to either resources or non-resource URLs.
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

// namespacedRules checks that a Role has no non-resource URLs, which are in no namespace.
func namespacedRules(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, rule := range rules.Objects(m, "rules") {
		if paths := rules.List(rule, "nonResourceURLs"); len(paths) > 0 {
			c.Invalid(at.Field("rules").Item(i).Field("nonResourceURLs"), paths, "namespaced rules cannot apply to non-resource URLs")
		}
	}
}

func aggregationSelectors(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if sum := rules.Object(m, "aggregationRule"); sum != nil && len(rules.List(sum, "clusterRoleSelectors")) == 0 {
		c.Required(at.Field("aggregationRule").Field("clusterRoleSelectors"), "at least one clusterRoleSelector required if aggregationRule is non-nil")
	}
}

// roleRefGroupIs validates roleRef, which is immutable. A ClusterRoleBinding must refer to
// a ClusterRole.
func roleRefGroupIs(c *rules.Check, m, old map[string]any, at *field.Path) {
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

// subjectOfKind validates a subject and its API group: users and groups have that of RBAC,
// ServiceAccounts none.
func subjectOfKind(c *rules.Check, m, _ map[string]any, at *field.Path) {
	group, want := rules.Text(m, "apiGroup"), ""
	switch m["kind"] {
	case "ServiceAccount":
	case "User", "Group":
		want = c.Vocabulary.Group("rbac.authorization.")
	default:
		want = group
	}
	if group != want {
		c.NotSupported(at.Field("apiGroup"), group, want)
	}
	subjectKind(c, m, at)
}

// subjectKind validates a subject but for its API group. ServiceAccounts have a namespace,
// which defaults to that of a RoleBinding.
func subjectKind(c *rules.Check, m map[string]any, at *field.Path) {
	switch m["kind"] {
	case "ServiceAccount":
		c.Must(validation.IsDNS1123Subdomain, rules.Text(m, "name"), at.Field("name"))
		if rules.Text(m, "namespace") == "" && c.Root["kind"] == "ClusterRoleBinding" {
			c.Required(at.Field("namespace"), "")
		}
	case "User", "Group":
	default:
		c.NotSupported(at.Field("kind"), rules.Text(m, "kind"), "ServiceAccount", "User", "Group")
	}
}

func roleRefGroup(m map[string]any, v vocabulary.Vocabulary) {
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
