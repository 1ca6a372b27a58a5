// Package autoscaling holds the functions of HorizontalPodAutoscalers in all their
// versions. It serves "Resources and their fields" of the specification.
package autoscaling

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"containerResourceName": containerResourceName,
		"describedVersions":     describedVersions,
		"externalMetricTarget":  externalMetricTarget,
		"longestPeriod":         longestPeriod,
		"longestWindow":         longestWindow,
		"metricTarget":          metricTarget,
		"minimumAllowed":        minimumAllowed,
		"minimumBelowMaximum":   minimumBelowMaximum,
		"objectMetricTarget":    objectMetricTarget,
		"podsMetricTarget":      podsMetricTarget,
		"resourceMetricTarget":  resourceMetricTarget,
		"scaleToZero":           scaleToZero,
		"scalingPolicies":       scalingPolicies,
		"targetGroup":           targetGroup,
	},
	Derive: map[string]rules.DeriveFunc{
		"oldestTarget":     oldestTarget,
		"usualFlatMetrics": usualFlatMetrics,
		"usualMetrics":     usualMetrics,
	},
	Cells: map[string]cell.Func{
		"showAutoscalerReference": showAutoscalerReference,
		"showNamedTargets":        showNamedTargets,
		"showAutoscalerTargets":   showAutoscalerTargets,
	},
	Convert: map[string]kinds.ConvertFunc{
		"autoscalerFromV1":      autoscalerFromV1,
		"autoscalerFromV2beta1": autoscalerFromV2beta1,
		"autoscalerToV1":        autoscalerToV1,
		"autoscalerToV2beta1":   autoscalerToV2beta1,
	},
}
