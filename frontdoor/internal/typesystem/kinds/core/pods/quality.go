package pods

import (
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/api/resource"
)

// compute are the resources that say what a pod may rely on.
var compute = [...]string{"cpu", "memory"}

// qualityOfService tells in a pod's status what the pod may rely on: all that it may use, where
// each container limits all of it and asks for no less; something, where any asks for
// something; else what others leave.
func qualityOfService(m map[string]any, _ vocabulary.Vocabulary) {
	status := rules.Object(m, "status")
	if status == nil {
		return // no state of a pod, and nowhere to tell
	}
	asked, guaranteed := false, true
	for _, name := range containerLists {
		for _, container := range rules.Objects(rules.Object(m, "spec"), name) {
			limits, requests := rules.Object(container, "resources", "limits"), rules.Object(container, "resources", "requests")
			for _, resource := range compute {
				limit, request := amount(limits[resource]), amount(requests[resource])
				asked = asked || limit.Sign() > 0 || request.Sign() > 0
				guaranteed = guaranteed && limit.Sign() > 0 && limit.Cmp(request) == 0
			}
		}
	}
	switch {
	case !asked:
		status["qosClass"] = "BestEffort"
	case guaranteed:
		status["qosClass"] = "Guaranteed"
	default:
		status["qosClass"] = "Burstable"
	}
}

// amount reads a quantity that may be written as a number still.
func amount(value any) resource.Quantity {
	switch value.(type) {
	case int64, float64:
		value = fmt.Sprint(value)
	}
	return rules.Quantity(value)
}
