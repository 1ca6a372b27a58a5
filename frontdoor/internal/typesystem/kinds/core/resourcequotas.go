package core

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// counted are the quota resources that are counts of objects, and so integers; compute are
// those of containers, and others the remaining ones.
var (
	counted = []string{"pods", "services", "services.nodeports", "services.loadbalancers", "replicationcontrollers", "resourcequotas",
		"secrets", "configmaps", "persistentvolumeclaims"}
	compute = []string{"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
	others  = []string{"ephemeral-storage", "requests.storage", "requests.ephemeral-storage", "limits.ephemeral-storage"}
)

// standardOfQuota reports whether an unqualified name is valid in a quota.
func standardOfQuota(name string) bool {
	return slices.Contains(counted, name) || slices.Contains(compute, name) || slices.Contains(others, name) ||
		strings.HasPrefix(name, "hugepages-") || strings.HasPrefix(name, "requests.hugepages-")
}

// quotaResources validates the resources of a quota.
func quotaResources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	quotaAmounts(c, rules.Object(m, "hard"), at.Field("hard"))
}

// quotaStatus validates the resources in the status of a quota.
func quotaStatus(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, name := range [...]string{"hard", "used"} {
		quotaAmounts(c, rules.Object(m, "status", name), at.Field("status").Field(name))
	}
}

func quotaAmounts(c *rules.Check, amounts map[string]any, at *field.Path) {
	for name, value := range amounts {
		where := at.Entry(name)
		if !strings.Contains(name, "/") && !standardOfQuota(name) {
			c.Invalid(where, name, "must be a standard resource for quota")
			if name != "storage" {
				c.Invalid(where, name, "must be a standard resource type or fully qualified")
			}
		}
		amount(c, value, isCounted(c, name), where)
	}
}

// isCounted reports whether amounts of a resource are integers: counts of objects, and
// extended resources.
func isCounted(c *rules.Check, name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	return slices.Contains(counted, name) ||
		qualified && !strings.Contains(domain, c.Vocabulary.Domain) && !strings.HasPrefix(domain, "requests.")
}

// amount checks that an amount is not negative, and an integer if whole is set.
func amount(c *rules.Check, value any, whole bool, at *field.Path) {
	switch q := rules.Quantity(value); {
	case q.Sign() < 0:
		c.Invalid(at, value, "must be greater than or equal to 0")
	case whole && q.MilliValue()%1000 != 0:
		c.Invalid(at, value, "must be an integer")
	}
}

// crossNamespaces is the scope of pods with an affinity to pods of other namespaces.
const crossNamespaces = "CrossNamespacePodAffinity"

// crossesNamespaces reports whether a quota has that scope.
func crossesNamespaces(spec map[string]any) bool {
	selected := rules.Objects(rules.Object(spec, "scopeSelector"), "matchExpressions")
	return slices.Contains(rules.Texts(spec, "scopes"), crossNamespaces) ||
		slices.ContainsFunc(selected, func(e map[string]any) bool { return rules.Text(e, "scopeName") == crossNamespaces })
}

// quotaScopes checks that scopes do not conflict and only apply to resources that they
// support.
func quotaScopes(c *rules.Check, m, old map[string]any, at *field.Path) {
	if !c.On("PodAffinityNamespaceSelector") && !crossesNamespaces(old) && crossesNamespaces(m) {
		c.Invalid(at.Field("scopes"), crossNamespaces, "unsupported scope")
	}
	scopes, selected := rules.Texts(m, "scopes"), []string{}
	for _, expression := range rules.Objects(rules.Object(m, "scopeSelector"), "matchExpressions") {
		if scope := rules.Text(expression, "scopeName"); quotaScope(c, scope) {
			selected = append(selected, scope) // scopeOperator reports others
		}
	}
	checkScopes(c, scopes, rules.Object(m, "hard"), at.Field("scopes"))
	checkScopes(c, selected, rules.Object(m, "hard"), at.Field("scopeSelector").Field("matchExpressions"))
}

func checkScopes(c *rules.Check, scopes []string, hard map[string]any, at *field.Path) {
	has := func(scope string) bool { return slices.Contains(scopes, scope) }
	for _, scope := range scopes {
		if !quotaScope(c, scope) {
			c.Invalid(at, scopes, "unsupported scope")
		}
		for name := range hard {
			if standardOfQuota(name) && !scopeFits(scope, name) {
				c.Invalid(at, scopes, "unsupported scope applied to resource")
			}
		}
	}
	if has("Terminating") && has("NotTerminating") || has("BestEffort") && has("NotBestEffort") {
		c.Invalid(at, scopes, "conflicting scopes")
	}
}

// classOfClaims is the scope of claims with a VolumeAttributesClass.
const classOfClaims = "VolumeAttributesClass"

// quotaScope reports whether the release has a scope.
func quotaScope(c *rules.Check, name string) bool {
	return slices.Contains([]string{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", crossNamespaces}, name) ||
		name == classOfClaims && !c.Release.Before(attributesMutable)
}

// scopeFits reports whether a scope supports a resource: BestEffort the number of pods, the
// other scopes of pods compute resources as well, and the scope of claims number and storage.
func scopeFits(scope, name string) bool {
	switch {
	case scope == classOfClaims:
		return name == "persistentvolumeclaims" || name == "requests.storage"
	case name == "pods":
		return true
	}
	return scope != "BestEffort" && slices.Contains(compute, name)
}

// scopeOperator checks the operator of a scope: only scopes of classes support values. As in
// Kubernetes, errors have the path of the list and not of the item.
func scopeOperator(c *rules.Check, m, _ map[string]any, at *field.Path) {
	operator, values, at := rules.Text(m, "operator"), rules.List(m, "values"), at.Parent
	switch scope := rules.Text(m, "scopeName"); {
	case !quotaScope(c, scope):
		c.Invalid(at.Field("scopeName"), scope, "unsupported scope")
	case scope != "PriorityClass" && scope != classOfClaims && operator != "Exists":
		c.Invalid(at.Field("operator"), operator, "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "+
			"ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity")
	}
	switch operator {
	case "In", "NotIn":
		if len(values) == 0 {
			c.Required(at.Field("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
		}
	case "Exists", "DoesNotExist":
		if len(values) > 0 {
			c.Invalid(at.Field("values"), values, "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector")
		}
	default:
		c.Invalid(at.Field("operator"), operator, "not a valid selector operator")
	}
}
