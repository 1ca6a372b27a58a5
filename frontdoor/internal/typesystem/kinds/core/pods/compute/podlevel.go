package compute

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// wholePodRequests defaults the requests of a pod that has limits of its own: to those of
// its containers, or else to its limits.
func wholePodRequests(m map[string]any, _ vocabulary.Vocabulary) {
	spec := rules.Object(m, "spec")
	whole := rules.Object(spec, "resources")
	limits := rules.Object(whole, "limits")
	if len(limits) == 0 {
		return
	}
	requests := maps.Clone(rules.Object(whole, "requests"))
	if requests == nil {
		requests = map[string]any{}
	}
	for _, name := range Resources {
		if sum, ok := requestOfContainers(spec, name); ok && requests[name] == nil {
			requests[name] = sum.String()
		}
	}
	for name, limit := range limits {
		if requests[name] == nil && (name == "cpu" || name == "memory" || strings.HasPrefix(name, "hugepages-")) {
			requests[name] = limit
		}
	}
	whole["requests"] = requests
}

// requestOfContainers returns what the containers request at the same time at most: all
// that run together, or an init container with the sidecars that were started before it. ok
// is false if none requests the resource.
func requestOfContainers(spec map[string]any, name string) (most resource.Quantity, ok bool) {
	var together resource.Quantity
	add := func(container map[string]any) resource.Quantity {
		value := rules.Object(container, "resources", "requests")[name]
		ok = ok || value != nil
		return amount(value)
	}
	for _, container := range rules.Objects(spec, "initContainers") {
		now := add(container)
		now.Add(together)
		if container["restartPolicy"] == "Always" {
			together = now.DeepCopy()
		}
		if now.Cmp(most) > 0 {
			most = now
		}
	}
	for _, container := range rules.Objects(spec, "containers") {
		together.Add(add(container))
	}
	if together.Cmp(most) > 0 {
		most = together
	}
	return most, ok
}
