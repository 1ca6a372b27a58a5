package autoscaling

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

func showAutoscalerReference(o *cell.Object) any {
	target := o.Spec.Get("scaleTargetRef")
	return target.Get("kind").String() + "/" + target.Get("name").String()
}

// shownMetrics limits the metrics in a cell.
const shownMetrics = 2

// showAutoscalerTargets returns current/target of each metric.
func showAutoscalerTargets(o *cell.Object) any { return targetsOf(o, shownMetric) }

// showNamedTargets is showAutoscalerTargets with the names of resources.
func showNamedTargets(o *cell.Object) any {
	return targetsOf(o, func(metric, current rawjson.Value) string {
		shown := shownMetric(metric, current)
		if name := metricSource(metric).Get("name").Text(); name != "" && strings.HasSuffix(metric.Get("type").String(), "Resource") {
			return name + ": " + shown
		}
		return shown
	})
}

func targetsOf(o *cell.Object, shown func(metric, current rawjson.Value) string) any {
	metrics, current := autoscalerMetrics(o)
	var targets []string
	for i, metric := range metrics {
		var now rawjson.Value
		if i < len(current) {
			now = current[i]
		}
		targets = append(targets, shown(metric, now))
	}
	switch more := len(targets) - shownMetrics; {
	case len(targets) == 0:
		return cell.None
	case more > 0:
		return strings.Join(targets[:shownMetrics], ", ") + " + " + cell.Count(more) + " more..."
	}
	return strings.Join(targets, ", ")
}

// autoscalerMetrics returns the target metrics and the current ones. Version v1 has fields
// for CPU utilization only; other metrics are in annotations, as is the order of all of
// them, by which targets and current values correspond.
func autoscalerMetrics(o *cell.Object) (metrics, current []rawjson.Value) {
	annotated := func(note string) []rawjson.Value {
		text := o.Metadata.Get("annotations", o.Names.Qualified("autoscaling.alpha", note)).String()
		if !json.Valid([]byte(text)) {
			return nil
		}
		return slices.Collect(rawjson.Value(text).Items())
	}
	if given := o.Spec.Get("metrics"); given.Exists() {
		return slices.Collect(given.Items()), slices.Collect(o.Status.Get("currentMetrics").Items())
	}
	metrics, current = annotated("metrics"), annotated("current-metrics")
	if target := o.Spec.Get("targetCPUUtilizationPercentage"); target.Exists() {
		ordered := annotated("original-metrics")
		if i := slices.IndexFunc(ordered, isCPU); i >= 0 {
			metrics, ordered[i] = ordered, cpuMetric("target", target)
		} else {
			metrics = append(metrics, cpuMetric("target", target))
		}
	}
	if now := o.Status.Get("currentCPUUtilizationPercentage"); now.Exists() && len(current) == 0 {
		current = append(current, cpuMetric("current", now))
	}
	return metrics, current
}

// isCPU reports whether v1 has a field for the metric.
func isCPU(metric rawjson.Value) bool {
	return metric.Get("resource", "name").Is("cpu") && metric.Get("resource", "target", "averageUtilization").Exists()
}

func cpuMetric(part string, utilization rawjson.Value) rawjson.Value {
	return rawjson.Value(`{"type":"Resource","resource":{"name":"cpu","` + part + `":{"averageUtilization":` + string(utilization) + `}}}`)
}

// shownMetric formats a metric in the unit of its target.
func shownMetric(metric, current rawjson.Value) string {
	target, now := metricSource(metric), metricSource(current)
	perPod := metric.Get("type").Is("Pods") || metric.Get("type").Is("Resource") || metric.Get("type").Is("ContainerResource")
	if utilization := measure(target, "target", "averageUtilization"); utilization != "" {
		return percent(measure(now, "current", "averageUtilization")) + "/" + percent(utilization)
	}
	if average := measure(target, "target", "averageValue"); average != "" {
		shown := cmp.Or(measure(now, "current", "averageValue"), cell.Unknown) + "/" + average
		if perPod {
			return shown // such metrics are always averages
		}
		return shown + " (avg)"
	}
	return cmp.Or(measure(now, "current", "value"), cell.Unknown) + "/" + measure(target, "target", "value")
}

// metricSource returns the part of a metric that its type names: resource for Resource.
func metricSource(metric rawjson.Value) rawjson.Value {
	kind := metric.Get("type").String()
	if kind == "" {
		return nil
	}
	return metric.Get(strings.ToLower(kind[:1]) + kind[1:])
}

// measure returns a number of a source: target.averageValue, or targetAverageValue or
// averageValue in older versions; "" for none.
func measure(source rawjson.Value, part, name string) string {
	for _, v := range []rawjson.Value{source.Get(part, name), source.Get(part + strings.ToUpper(name[:1]) + name[1:]), source.Get(name)} {
		if v.Exists() {
			return v.Text()
		}
	}
	return ""
}

func percent(utilization string) string {
	if utilization == "" {
		return cell.Unknown
	}
	return utilization + "%"
}
