package workloads

import (
	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// usualTarget is the CPU utilization, in percent, that an autoscaler aims at when it
// names no metric.
const usualTarget = int64(80)

// oldestTarget is the target of a v1 autoscaler. When its other metrics are in an
// annotation, it need not have that of CPU.
func oldestTarget(m map[string]any, v vocabulary.Vocabulary) {
	annotations := rules.Object(m, "metadata", "annotations")
	if _, others := annotations[v.Qualified("autoscaling.alpha", "metrics")]; others {
		return
	}
	if spec := rules.Object(m, "spec"); spec != nil && spec["targetCPUUtilizationPercentage"] == nil {
		spec["targetCPUUtilizationPercentage"] = usualTarget
	}
}

func minimumBelowMaximum(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if maximum, ok := rules.Whole(m["maxReplicas"]); ok && maximum < rules.Number(m, "minReplicas") {
		c.Invalid(at.Field("maxReplicas"), maximum, "must be greater than or equal to `minReplicas`")
	}
}

// targetsOf lists, by the kind of a target, the field that belongs to it.
var targetsOf = map[string]string{"Utilization": "averageUtilization", "Value": "value", "AverageValue": "averageValue"}

// metricTarget: a metric has one target, of the kind that it says.
func metricTarget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if mine := targetsOf[rules.Text(m, "type")]; mine != "" && m[mine] == nil {
		c.Required(at.Field(mine), "must specify a target of the type "+rules.Text(m, "type"))
	}
	if m["averageUtilization"] != nil && m["averageValue"] != nil {
		c.Forbidden(at.Field("averageValue"), "may not set both a target raw value and a target utilization")
	}
}

// scalingPolicies: a rule says by which steps it scales.
func scalingPolicies(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if policies, given := m["policies"]; given && rules.Empty(policies) {
		c.Required(at.Field("policies"), "must specify at least one Policy")
	}
}
