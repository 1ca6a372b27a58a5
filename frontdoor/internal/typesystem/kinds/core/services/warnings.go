package services

import (
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// serviceWarnings warns of settings of a Service that have no effect, or not for long.
func serviceWarnings(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	if c.Subresource != "" { // which does not write the spec
		return
	}
	spec := rules.Object(m, "spec")
	kind := rules.Text(spec, "type")
	headless, external := kind == "ClusterIP" && spec["clusterIP"] == "None", kind == "ExternalName"
	addresses := len(rules.List(spec, "externalIPs")) > 0
	hints, mode := c.Vocabulary.Qualified("service", "topology-aware-hints"), c.Vocabulary.Qualified("service", "topology-mode")
	if _, hinted := rules.Object(m, "metadata", "annotations")[hints]; hinted {
		c.Warn(fmt.Sprintf("annotation %s is deprecated, please use %s instead", hints, mode))
	}
	for _, w := range [...]struct {
		holds bool
		text  string
	}{
		{headless && rules.Text(spec, "loadBalancerIP") != "", "spec.loadBalancerIP is ignored for headless services"},
		{headless && addresses, "spec.externalIPs is ignored for headless services"},
		{headless && spec["sessionAffinity"] != "None", "spec.SessionAffinity is ignored for headless services"},
		{addresses && !headless && !external, "spec.externalIPs is deprecated and may no longer be implemented in some clusters"},
		{addresses && external, `spec.externalIPs is ignored when spec.type is "ExternalName"`},
		{!external && rules.Text(spec, "externalName") != "", `spec.externalName is ignored when spec.type is not "ExternalName"`},
		{spec["trafficDistribution"] == "PreferClose", `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`},
	} {
		if w.holds {
			c.Warn(w.text)
		}
	}
}
