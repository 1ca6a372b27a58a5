package autoscaling

import (
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// The hub version of autoscalers is v2beta2. Fields that another version lacks are stored
// in annotations (see notes). v1 has one metric, the average CPU utilization in percent;
// v2beta1 has all metrics in a flat form, and no behavior.

// defaultUtilization is the target of a v1 autoscaler without any metrics.
const defaultUtilization = int64(80)

// autoscalerFromV1 appends the CPU metric to the others.
func autoscalerFromV1(v vocabulary.Vocabulary, autoscaler map[string]any) {
	n := takeNotes(v, autoscaler)
	edit.Member(autoscaler, "spec", func(spec map[string]any) {
		metrics := targets.allFromFlat(decoded[[]autoscalingv1.MetricSpec](n[notedMetrics]))
		if utilization, ok := edit.Take(spec, "targetCPUUtilizationPercentage"); ok {
			metrics = append(metrics, cpuTarget(utilization))
		} else if len(metrics) == 0 {
			metrics = append(metrics, cpuTarget(defaultUtilization))
		}
		spec["metrics"] = recall(metrics, decoded[[]autoscalingv2.MetricSpec](n[originalMetrics]), targetsThroughV1)
		recallBehavior(spec, n)
	})
	if autoscaler["status"] == nil && n[notedStatuses]+n[notedConditions] != "" {
		autoscaler["status"] = map[string]any{}
	}
	edit.Member(autoscaler, "status", func(status map[string]any) {
		metrics := currents.allFromFlat(decoded[[]autoscalingv1.MetricStatus](n[notedStatuses]))
		utilization, ok := edit.Take(status, "currentCPUUtilizationPercentage")
		if ok && len(metrics) == 0 {
			metrics = append(metrics, cpuCurrent(utilization))
		}
		if len(metrics) > 0 {
			status["currentMetrics"] = recall(metrics, decoded[[]autoscalingv2.MetricStatus](n[originalStatuses]), currents.through)
		}
		status["conditions"] = decoded[[]autoscalingv1.HorizontalPodAutoscalerCondition](n[notedConditions])
	})
}

// autoscalerToV1 stores in annotations what v1 lacks: all metrics but the first of CPU
// utilization, and all current values, which have more than the percentage.
func autoscalerToV1(v vocabulary.Vocabulary, autoscaler map[string]any) {
	takeNotes(v, autoscaler)
	n := notes{}
	edit.Member(autoscaler, "spec", func(spec map[string]any) {
		list, _ := edit.Take(spec, "metrics")
		metrics, _ := list.([]any)
		n.keep(originalMetrics, metrics, targetsThroughV1)
		cpu, others := splitCPU(metrics)
		if cpu != nil {
			spec["targetCPUUtilizationPercentage"] = cpu
		}
		encodeAs[autoscalingv1.MetricSpec](n, notedMetrics, targets.allToFlat(others))
		n.noteBehavior(spec)
	})
	edit.Member(autoscaler, "status", func(status map[string]any) {
		list, _ := edit.Take(status, "currentMetrics")
		metrics, _ := list.([]any)
		n.keep(originalStatuses, metrics, currents.through)
		if cpu := currentCPU(metrics); cpu != nil {
			status["currentCPUUtilizationPercentage"] = cpu
		}
		encodeAs[autoscalingv1.MetricStatus](n, notedStatuses, currents.allToFlat(metrics))
		given, _ := edit.Take(status, "conditions")
		conditions, _ := given.([]any)
		encodeAs[autoscalingv1.HorizontalPodAutoscalerCondition](n, notedConditions, conditions)
	})
	n.write(v, autoscaler)
}

func autoscalerFromV2beta1(v vocabulary.Vocabulary, autoscaler map[string]any) {
	n := takeNotes(v, autoscaler)
	edit.Member(autoscaler, "spec", func(spec map[string]any) {
		if metrics, ok := spec["metrics"].([]any); ok {
			spec["metrics"] = recall(targets.allFromFlat(metrics), decoded[[]autoscalingv2.MetricSpec](n[originalMetrics]), targets.through)
		}
		recallBehavior(spec, n)
	})
	edit.Member(autoscaler, "status", func(status map[string]any) {
		if metrics, ok := status["currentMetrics"].([]any); ok {
			status["currentMetrics"] = recall(currents.allFromFlat(metrics), decoded[[]autoscalingv2.MetricStatus](n[originalStatuses]), currents.through)
		}
	})
}

func autoscalerToV2beta1(v vocabulary.Vocabulary, autoscaler map[string]any) {
	takeNotes(v, autoscaler)
	n := notes{}
	edit.Member(autoscaler, "spec", func(spec map[string]any) {
		if metrics, ok := spec["metrics"].([]any); ok {
			n.keep(originalMetrics, metrics, targets.through)
			spec["metrics"] = targets.allToFlat(metrics)
		}
		n.noteBehavior(spec)
	})
	edit.Member(autoscaler, "status", func(status map[string]any) {
		if metrics, ok := status["currentMetrics"].([]any); ok {
			n.keep(originalStatuses, metrics, currents.through)
			status["currentMetrics"] = currents.allToFlat(metrics)
		}
	})
	n.write(v, autoscaler)
}

// targetsThroughV1 returns the result of a round trip of metrics through v1.
func targetsThroughV1(metrics []any) []any {
	cpu, others := splitCPU(metrics)
	through := targets.through(others)
	if cpu != nil {
		through = append(through, cpuTarget(cpu))
	}
	return through
}

// splitCPU returns the target of the first metric that v1 has a field for, nil if there is
// none, and the other metrics.
func splitCPU(metrics []any) (utilization any, others []any) {
	for _, item := range metrics {
		metric, _ := item.(map[string]any)
		resource := tree.Child(metric, "resource")
		target := tree.Child(resource, "target")["averageUtilization"]
		if utilization == nil && target != nil && metric["type"] == "Resource" && resource["name"] == "cpu" {
			utilization = target
		} else {
			others = append(others, item)
		}
	}
	return utilization, others
}

// currentCPU returns the current CPU utilization; nil if it is unknown.
func currentCPU(metrics []any) (utilization any) {
	for _, item := range metrics {
		metric, _ := item.(map[string]any)
		resource := tree.Child(metric, "resource")
		current := tree.Child(resource, "current")["averageUtilization"]
		if current != nil && metric["type"] == "Resource" && resource["name"] == "cpu" {
			utilization = current
		}
	}
	return utilization
}

func cpuTarget(utilization any) map[string]any {
	return map[string]any{"type": "Resource", "resource": map[string]any{
		"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": utilization}}}
}

func cpuCurrent(utilization any) map[string]any {
	return map[string]any{"type": "Resource", "resource": map[string]any{
		"name": "cpu", "current": map[string]any{"averageUtilization": utilization}}}
}

// behavior is the behavior of an autoscaler in the form of its annotation: Kubernetes
// encodes an internal Go type without JSON names.
type behavior struct{ ScaleUp, ScaleDown *scalingRules }

type scalingRules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *string
	Policies                   []scalingPolicy
}

type scalingPolicy struct {
	Type                 string
	Value, PeriodSeconds int32
}

// noteBehavior moves the behavior of a spec into a note.
func (n notes) noteBehavior(spec map[string]any) {
	given, ok := edit.Take(spec, "behavior")
	text, err := json.Marshal(given)
	noted := behavior{}
	if !ok || err != nil || json.Unmarshal(text, &noted) != nil {
		return
	}
	n.encode(notedBehavior, noted)
}

// recallBehavior moves the behavior from a note to the spec. Decoding ignores the case of
// member names.
func recallBehavior(spec map[string]any, n notes) {
	if b, ok := decodedAny[autoscalingv2.HorizontalPodAutoscalerBehavior](n[notedBehavior]).(map[string]any); ok && len(b) > 0 {
		spec["behavior"] = b
	}
}
