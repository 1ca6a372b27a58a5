package compute

import (
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are the resources that determine the QoS class.
var Resources = [...]string{"cpu", "memory"}

// qualityOfService sets status.qosClass: Guaranteed if each container has limits for all
// compute resources and requests equal to them, BestEffort if none has limits or requests,
// else Burstable.
func qualityOfService(m map[string]any, _ vocabulary.Vocabulary) {
	status := rules.Object(m, "status")
	if status == nil || rules.Text(status, "qosClass") != "" {
		return // there is no status to set it in, or a write of the status must not change it
	}
	status["qosClass"] = Class(rules.Object(m, "spec"))
}

// Class returns the quality of service of a pod with a spec.
func Class(spec map[string]any) string {
	requested, guaranteed := false, true
	if whole := rules.Object(spec, "resources"); len(rules.Object(whole, "limits"))+len(rules.Object(whole, "requests")) > 0 {
		spec = map[string]any{"containers": []any{map[string]any{"resources": whole}}} // those of the whole pod count
	}
	for _, name := range [...]string{"initContainers", "containers"} {
		for _, container := range rules.Objects(spec, name) {
			limits, requests := rules.Object(container, "resources", "limits"), rules.Object(container, "resources", "requests")
			for _, resource := range Resources {
				limit, request := amount(limits[resource]), amount(requests[resource])
				requested = requested || limit.Sign() > 0 || request.Sign() > 0
				guaranteed = guaranteed && limit.Sign() > 0 && limit.Cmp(request) == 0
			}
		}
	}
	switch {
	case !requested:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

// amount parses a quantity, which can still be a JSON number here.
func amount(value any) resource.Quantity {
	switch value.(type) {
	case int64, float64:
		value = fmt.Sprint(value)
	}
	return rules.Quantity(value)
}
