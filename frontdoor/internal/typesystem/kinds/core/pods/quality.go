package pods

import (
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/api/resource"
)

// compute are the resources that determine the QoS class.
var compute = [...]string{"cpu", "memory"}

// qualityOfService sets status.qosClass: Guaranteed if each container has limits for all
// compute resources and requests equal to them, BestEffort if none has limits or requests,
// else Burstable.
func qualityOfService(m map[string]any, _ vocabulary.Vocabulary) {
	status := rules.Object(m, "status")
	if status == nil {
		return // there is no status to set it in
	}
	status["qosClass"] = class(rules.Object(m, "spec"))
}

// class returns the quality of service of a pod with a spec.
func class(spec map[string]any) string {
	requested, guaranteed := false, true
	for _, name := range containerLists {
		for _, container := range rules.Objects(spec, name) {
			limits, requests := rules.Object(container, "resources", "limits"), rules.Object(container, "resources", "requests")
			for _, resource := range compute {
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
