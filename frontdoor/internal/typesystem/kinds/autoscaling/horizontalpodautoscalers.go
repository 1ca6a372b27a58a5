package autoscaling

import (
	"encoding/json"
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// usualTarget is the default target of CPU utilization, in percent.
const usualTarget = int64(80)

// oldestTarget defaults the CPU target of a v1 autoscaler, unless an annotation has other
// metrics.
func oldestTarget(m map[string]any, v vocabulary.Vocabulary) {
	annotations := rules.Object(m, "metadata", "annotations")
	if _, others := annotations[v.Qualified("autoscaling.alpha", "metrics")]; others {
		return
	}
	if spec := rules.Object(m, "spec"); spec != nil && spec["targetCPUUtilizationPercentage"] == nil {
		spec["targetCPUUtilizationPercentage"] = usualTarget
	}
}

// usualMetrics defaults the metrics to a target of CPU utilization. An empty list is none.
func usualMetrics(m map[string]any, _ vocabulary.Vocabulary) {
	if rules.Empty(m["metrics"]) {
		m["metrics"] = []any{map[string]any{"type": "Resource", "resource": map[string]any{"name": "cpu",
			"target": map[string]any{"type": "Utilization", "averageUtilization": usualTarget}}}}
	}
}

// usualFlatMetrics does the same in the form of v2beta1.
func usualFlatMetrics(m map[string]any, v vocabulary.Vocabulary) {
	if rules.Empty(m["metrics"]) {
		usualMetrics(m, v)
		m["metrics"] = targets.allToFlat(rules.List(m, "metrics"))
	}
}

// minimumAllowed: scaling to nothing is a feature of its own. Who has it keeps it.
func minimumAllowed(c *rules.Check, m, old map[string]any, at *field.Path) {
	lowest := int64(1)
	if was, had := rules.Whole(old["minReplicas"]); c.On("HPAScaleToZero") || had && was == 0 {
		lowest = 0
	}
	if minimum, ok := rules.Whole(m["minReplicas"]); ok && minimum < lowest {
		c.Invalid(at.Field("minReplicas"), minimum, fmt.Sprintf("must be greater than or equal to %d", lowest))
	}
}

func minimumBelowMaximum(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if maximum, ok := rules.Whole(m["maxReplicas"]); ok && maximum < rules.Number(m, "minReplicas") {
		c.Invalid(at.Field("maxReplicas"), maximum, "must be greater than or equal to `minReplicas`")
	}
}

// scaleToZero checks that an autoscaler that may remove all pods has a metric that exists without
// them. v1 has such metrics in an annotation.
func scaleToZero(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if minimum, ok := rules.Whole(m["minReplicas"]); !ok || minimum != 0 {
		return
	}
	metrics := rules.Objects(m, "metrics")
	if annotated := rules.Text(rules.Object(c.Root, "metadata", "annotations"), c.Vocabulary.Qualified("autoscaling.alpha", "metrics")); len(metrics) == 0 {
		_ = json.Unmarshal([]byte(annotated), &metrics) // others are no metrics
	}
	for _, metric := range metrics {
		if kind := rules.Text(metric, "type"); kind == "Object" || kind == "External" {
			return
		}
	}
	c.Forbidden(at.Field("metrics"), "must specify at least one Object or External metric to support scaling to zero replicas")
}

// longestWindow checks the bound of a stabilization window.
func longestWindow(c *rules.Check, m, _ map[string]any, at *field.Path) {
	atMost(c, m["stabilizationWindowSeconds"], 3600, at.Field("stabilizationWindowSeconds"))
}

// longestPeriod checks the bound of the period of a scaling policy.
func longestPeriod(c *rules.Check, m, _ map[string]any, at *field.Path) {
	atMost(c, m["periodSeconds"], 1800, at.Field("periodSeconds"))
}

func atMost(c *rules.Check, value any, bound int64, at *field.Path) {
	if n, ok := rules.Whole(value); ok && n > bound {
		c.Invalid(at, n, fmt.Sprintf("must be less than or equal to %d", bound))
	}
}

// containerResourceName checks the name of a resource of containers.
func containerResourceName(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if name := rules.Text(m, "name"); name != "" {
		resources.ContainerName(c, name, at.Field("name"))
	}
}

// describedVersions checks the versions of the objects that metrics describe, unless a stored
// one is invalid.
func describedVersions(c *rules.Check, m, old map[string]any, at *field.Path) {
	problem := func(metric map[string]any) (version string, err error) {
		version = rules.Text(rules.Object(metric, "object", "describedObject"), "apiVersion")
		_, err = runtimeschema.ParseGroupVersion(version)
		return version, err
	}
	for _, metric := range rules.Objects(old, "metrics") {
		if _, err := problem(metric); err != nil && rules.Text(metric, "type") == "Object" {
			return
		}
	}
	for i, metric := range rules.Objects(m, "metrics") {
		if version, err := problem(metric); err != nil {
			c.Invalid(at.Field("metrics").Item(i).Field("object").Field("describedObject").Field("apiVersion"), version, err.Error())
		}
	}
}

// metricTarget checks the type of a target. The checks of its values depend on the source.
func metricTarget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch kind := rules.Text(m, "type"); kind {
	case "Utilization", "Value", "AverageValue":
	case "":
		c.Required(at.Field("type"), "must specify a metric target type")
		fallthrough
	default:
		c.Invalid(at.Field("type"), kind, "must be either Utilization, Value, or AverageValue")
	}
}

// source holds the requirements for the targets of one source of metrics.
type source struct {
	// either lists the fields of which one is required; the first one is named in the
	// error.
	either []string
	why    string
	// alone is a field that excludes the others; "" for none.
	alone, whyAlone string
}

func resourceMetricTarget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	source{[]string{"averageUtilization", "averageValue"}, "must set either a target raw value or a target utilization",
		"averageValue", "may not set both a target raw value and a target utilization"}.check(c, m, at)
}

func podsMetricTarget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	source{[]string{"averageValue"}, "must specify a positive target averageValue", "", ""}.check(c, m, at)
}

func objectMetricTarget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	source{[]string{"averageValue", "value"}, "must set either a target value or averageValue", "", ""}.check(c, m, at)
}

func externalMetricTarget(c *rules.Check, m, _ map[string]any, at *field.Path) {
	source{[]string{"averageValue", "value"}, "must set either a target value for metric or a per-pod target",
		"value", "may not set both a target value for metric and a per-pod target"}.check(c, m, at)
}

// check validates the target of a metric.
func (s source) check(c *rules.Check, m map[string]any, at *field.Path) {
	target, at := rules.Object(m, "target"), at.Field("target")
	given := 0
	for _, name := range s.either {
		if target[name] != nil {
			given++
		}
	}
	switch {
	case given == 0:
		c.Required(at.Field(s.either[0]), s.why)
	case given > 1 && s.alone != "":
		c.Forbidden(at.Field(s.alone), s.whyAlone)
	}
}

// scalingPolicies checks that the list of policies is not empty. One that is absent has a default.
func scalingPolicies(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if rules.Empty(m["policies"]) {
		c.Required(at.Field("policies"), "must specify at least one Policy")
	}
}

// targetGroup checks that the target of an autoscaler names its group, except for the type of
// the core group that can be scaled. What an update does not change stays valid.
func targetGroup(c *rules.Check, m, old map[string]any, at *field.Path) {
	target := rules.Object(m, "scaleTargetRef")
	kind := rules.Text(target, "kind")
	if before := rules.Object(old, "scaleTargetRef"); old != nil && rules.Text(before, "kind") == kind && rules.Text(before, "apiVersion") == rules.Text(target, "apiVersion") {
		return
	}
	at, name := at.Field("scaleTargetRef").Field("apiVersion"), rules.Text(target, "apiVersion")
	switch version, err := runtimeschema.ParseGroupVersion(name); {
	case err != nil:
		c.Invalid(at, name, err.Error())
	case version.Group == "" && kind != "ReplicationController":
		c.Invalid(at, name, "apiVersion must specify API group")
	}
}
