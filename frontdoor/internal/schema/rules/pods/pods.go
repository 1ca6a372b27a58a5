// Package pods holds the rules of pods and of the templates that pods are made from:
// what goes together in a pod's spec, and what may change of a pod that runs. It
// never asks for what the pod refers to. It serves what users of pods expect.
package pods

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Comparisons are those that the overlay may name.
var Comparisons = map[string]rules.Comparison{
	"new pod":                         newPod,
	"changes that a pod allows":       podChanges,
	"containers of a pod":             podContainers,
	"host network ports":              hostNetworkPorts,
	"DNS of a pod":                    podDNS,
	"namespaces of a pod":             podNamespaces,
	"ports and paths of a container":  containerMembers,
	"hooks and probes of a container": containerProbes,
	"value or source":                 valueOrSource,
	"field of a pod":                  envField,
	"file of a pod's field":           volumeField,
	"resource of a container":         resourceField,
	"requests within limits":          requestsWithinLimits,
	"toleration operator":             tolerationOperator,
	"fields of a node":                nodeFields,
	"privileged without escalation":   escalation,
	"paths of a projection":           projectedPaths,
	"secret for CHAP":                 chapSecret,
	"target or identifiers":           fibreChannel,
}

// Derivations are those that the overlay may name.
var Derivations = map[string]rules.Derivation{
	"pull policy by image tag":       pullPolicy,
	"service account alias":          serviceAccountAlias,
	"requests are limits":            podRequests,
	"quality of service":             quality,
	"host ports on the host network": hostPorts,
	"empty dir without a source":     emptyDir,
}

// containerLists are the fields of a pod's spec that hold containers which have all
// of a container's fields.
var containerLists = [...]string{"initContainers", "containers"}

// newPod: debugging containers come later, and in their own way.
func newPod(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil && len(rules.List(rules.Object(m, "spec"), "ephemeralContainers")) > 0 {
		c.Forbidden(at.Field("spec").Field("ephemeralContainers"), "cannot be set on create")
	}
}

func podDNS(c *rules.Check, m, _ map[string]any, at *field.Path) {
	config := rules.Object(m, "dnsConfig")
	if m["dnsPolicy"] == "None" && len(rules.List(config, "nameservers")) == 0 {
		c.Required(at.Field("dnsConfig").Field("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
	}
}

// podNamespaces: a pod cannot share the host's processes and have its own.
func podNamespaces(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["hostPID"] == true && m["shareProcessNamespace"] == true {
		c.Invalid(at.Field("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
}

func tolerationOperator(c *rules.Check, m, _ map[string]any, at *field.Path) {
	operator := rules.Text(m, "operator")
	if rules.Text(m, "key") == "" && operator != "Exists" {
		c.Invalid(at.Field("operator"), operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	if operator == "Exists" && rules.Text(m, "value") != "" {
		c.Invalid(at.Field("value"), m["value"], "value must be empty when `operator` is 'Exists'")
	}
	if m["tolerationSeconds"] != nil && rules.Text(m, "effect") != "NoExecute" {
		c.Invalid(at.Field("effect"), rules.Text(m, "effect"), "effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
}

// nodeFields: of a node's fields a pod can only ask for the name.
func nodeFields(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, want := range rules.Objects(m, "matchFields") {
		where := at.Field("matchFields").Item(i)
		switch operator := rules.Text(want, "operator"); operator {
		case "In", "NotIn":
			if len(rules.List(want, "values")) != 1 {
				c.Required(where.Field("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
			}
		default:
			c.Invalid(where.Field("operator"), operator, "not a valid selector operator")
		}
		if key := rules.Text(want, "key"); key != "metadata.name" {
			c.Invalid(where.Field("key"), key, "not a valid field selector key")
		}
	}
	for i, want := range rules.Objects(m, "matchExpressions") {
		c.Must(validation.IsQualifiedName, rules.Text(want, "key"), at.Field("matchExpressions").Item(i).Field("key"))
	}
}

// serviceAccountAlias keeps the field's older name in step.
func serviceAccountAlias(m map[string]any, _ vocabulary.Vocabulary) {
	if name := rules.Text(m, "serviceAccountName"); name != "" {
		m["serviceAccount"] = name
	} else if name := rules.Text(m, "serviceAccount"); name != "" {
		m["serviceAccountName"] = name
	}
}

// hostPorts: on the host's network a container's port is the host's.
func hostPorts(m map[string]any, _ vocabulary.Vocabulary) {
	if m["hostNetwork"] != true {
		return
	}
	for _, name := range containerLists {
		for _, container := range rules.Objects(m, name) {
			for _, port := range rules.Objects(container, "ports") {
				if port != nil && rules.Number(port, "hostPort") == 0 && port["containerPort"] != nil {
					port["hostPort"] = port["containerPort"]
				}
			}
		}
	}
}
