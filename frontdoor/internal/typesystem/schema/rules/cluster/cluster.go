// Package cluster holds the rules of what governs a cluster and extends its API:
// roles, quotas and limits, nodes, events, certificates, webhooks, services of other
// groups, and fair shares. It never decides what any of them decides. It serves the
// sections that those kinds have in the specification.
package cluster

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Comparisons are those that files of package kinds may name.
var Comparisons = map[string]rules.CheckFunc{
	"rule about resources or paths":      policyRule,
	"rules about resources only":         namespacedRules,
	"selectors of an aggregation":        aggregation,
	"group of a role":                    roleGroupIs,
	"subject of its kind":                subject,
	"new event":                          newEvent,
	"any event":                          anyEvent,
	"signer of v1":                       signerOfV1,
	"certificate and conditions":         certificateStatus,
	"conditions of old requests":         oldCertificateStatus,
	"review version that is spoken here": reviewVersions,
	"one review version once":            eachOnce,
	"where a webhook is":                 whereWebhook,
	"status of an API service":           apiServiceStatus,
	"star stands alone":                  stars,
	"stars among resources":              resourceStars,
	"name of an API service":             apiServiceName,
	"trust in an API service":            apiServiceTrust,
	"priority below the system's":        systemPriority,
	"priority stays":                     priorityStays,
	"scopes of a quota":                  quotaScopes,
	"resources of a quota":               quotaResources,
	"operator of a scope":                scopeOperator,
	"limits of a type":                   limitsOfType,
	"one CIDR per family":                nodeCIDRs,
	"taints of a node":                   nodeTaints,
	"status of a node":                   nodeStatus,
	"changes that a node allows":         nodeChanges,
	"status of a quota":                  quotaStatus,
	"finalizers of a namespace":          namespaceFinalizers,
	"phase of a namespace":               namespacePhase,
	"hand fits the queues":               queuing,
	"namespaces or the cluster":          flowResources,
	"strategies of a policy":             securityPolicy,
	"runtime classes of a policy":        policyRuntimeClasses,
}

// Derivations are those that files of package kinds may name.
var Derivations = map[string]rules.DeriveFunc{
	"name label":             nameLabel,
	"group of the role":      roleGroup,
	"group of the subject":   subjectGroup,
	"names from kind":        customNames,
	"stored version":         customStored,
	"version or versions":    customVersions,
	"signer of old requests": oldSigner,
	"limits by type":         limitDefaults,
	"data from text":         textData,
	"podCIDR and podCIDRs":   sameCIDRs,
	"allocatable capacity":   allocatable,
}

// highestPriority is what users may give; above it is the system's own.
const highestPriority = 1000000000

// systemPriorities are the values of the priority classes of the system.
var systemPriorities = map[string]int64{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

func systemPriority(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name := rules.Text(rules.Object(m, "metadata"), "name")
	critical, system := systemPriorities[name]
	switch {
	case strings.HasPrefix(name, "system-") && !system:
		c.Forbidden(at.Field("metadata").Field("name"), "priority class names with 'system-' prefix are reserved for system use only")
	case system && rules.Number(m, "value") != critical:
		c.Forbidden(at.Field("metadata").Field("name"), fmt.Sprintf("priority class names with 'system-' prefix are reserved for system use only. "+
			"error: value of %s PriorityClass must be %d", name, critical))
	case system && m["globalDefault"] == true:
		c.Forbidden(at.Field("metadata").Field("name"), fmt.Sprintf("priority class names with 'system-' prefix are reserved for system use only. "+
			"error: globalDefault of %s PriorityClass must be false", name))
	}
	if rules.Number(m, "value") > highestPriority && !system {
		c.Forbidden(at.Field("value"), "maximum allowed value of a user defined priority is 1000000000")
	}
}

// priorityStays: pods that have a priority keep it.
func priorityStays(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && !rules.Same(m["value"], old["value"]) {
		c.Forbidden(at.Field("value"), "may not be changed in an update.")
	}
}
