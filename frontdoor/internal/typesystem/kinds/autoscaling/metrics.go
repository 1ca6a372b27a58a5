package autoscaling

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/tree"
)

// place maps a field of a metric's source between v2beta2, where the path can have two
// segments, and the flat form of v2beta1, which requires some fields.
type place struct {
	nested, flat string
	required     bool
}

// sources maps types of metrics to the places of their fields.
type sources map[string][]place

// targets are the sources of spec.metrics, currents those of status.currentMetrics.
var (
	targets = sources{
		"object": {{"describedObject", "target", false}, {"metric.name", "metricName", false}, {"metric.selector", "selector", false},
			{"target.value", "targetValue", true}, {"target.averageValue", "averageValue", false}},
		"pods": {{"metric.name", "metricName", false}, {"metric.selector", "selector", false},
			{"target.averageValue", "targetAverageValue", true}},
		"resource":          targetOfResource,
		"containerResource": append([]place{{"container", "container", false}}, targetOfResource...),
		"external": {{"metric.name", "metricName", false}, {"metric.selector", "metricSelector", false},
			{"target.value", "targetValue", false}, {"target.averageValue", "targetAverageValue", false}},
	}
	targetOfResource = []place{{"name", "name", false}, {"target.averageUtilization", "targetAverageUtilization", false},
		{"target.averageValue", "targetAverageValue", false}}

	currents = sources{
		"object": {{"describedObject", "target", false}, {"metric.name", "metricName", false}, {"metric.selector", "selector", false},
			{"current.value", "currentValue", true}, {"current.averageValue", "averageValue", false}},
		"pods": {{"metric.name", "metricName", false}, {"metric.selector", "selector", false},
			{"current.averageValue", "currentAverageValue", true}},
		"resource":          currentOfResource,
		"containerResource": append([]place{{"container", "container", false}}, currentOfResource...),
		"external": {{"metric.name", "metricName", false}, {"metric.selector", "metricSelector", false},
			{"current.value", "currentValue", true}, {"current.averageValue", "currentAverageValue", false}},
	}
	currentOfResource = []place{{"name", "name", false}, {"current.averageUtilization", "currentAverageUtilization", false},
		{"current.averageValue", "currentAverageValue", true}}
)

func (s sources) allToFlat(metrics []any) []any   { return s.all(metrics, toFlat) }
func (s sources) allFromFlat(metrics []any) []any { return s.all(metrics, fromFlat) }

// through returns the result of a round trip of metrics through the flat form.
func (s sources) through(metrics []any) []any { return s.allFromFlat(s.allToFlat(metrics)) }

// all converts the source of each metric.
func (s sources) all(metrics []any, convert func(map[string]any, []place) map[string]any) []any {
	return edit.Copies(metrics, func(metric map[string]any) {
		for kind, places := range s {
			if source, ok := metric[kind].(map[string]any); ok {
				metric[kind] = convert(source, places)
			}
		}
	})
}

func toFlat(source map[string]any, places []place) map[string]any {
	flat := map[string]any{}
	for _, p := range places {
		value, ok := source[p.nested]
		if group, name, below := strings.Cut(p.nested, "."); below {
			value, ok = tree.Child(source, group)[name]
		}
		if !ok && p.required {
			value, ok = "0", true
		}
		if ok {
			flat[p.flat] = value
		}
	}
	return flat
}

func fromFlat(flat map[string]any, places []place) map[string]any {
	source := map[string]any{}
	for _, p := range places {
		group, name, below := strings.Cut(p.nested, ".")
		if below && source[group] == nil {
			source[group] = map[string]any{}
		}
		value, ok := flat[p.flat]
		if ok && below {
			tree.Child(source, group)[name] = value
		} else if ok {
			source[p.nested] = value
		}
	}
	if target, ok := source["target"].(map[string]any); ok {
		completeTarget(target)
	}
	return source
}

// completeTarget sets the type of a target. It drops a value of zero beside an average,
// which is only present because the flat form requires it.
func completeTarget(target map[string]any) {
	switch {
	case target["averageUtilization"] != nil:
		target["type"] = "Utilization"
	case target["averageValue"] == nil && target["value"] != nil:
		target["type"] = "Value"
	default:
		target["type"] = "AverageValue"
		if target["value"] == "0" {
			delete(target, "value")
		}
	}
}
