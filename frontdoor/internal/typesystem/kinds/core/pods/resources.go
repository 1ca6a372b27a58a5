package pods

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// containerResources validates the resources of a container.
func containerResources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	resources.Container(c, rules.Object(m, "resources"), at.Field("resources"))
}

// podOverhead validates the overhead of a pod.
func podOverhead(c *rules.Check, m, _ map[string]any, at *field.Path) {
	resources.Overhead(c, rules.Object(m, "overhead"), at.Field("overhead"))
}

// podRequests defaults requests to limits.
func podRequests(m map[string]any, _ vocabulary.Vocabulary) {
	for _, name := range containerLists {
		for _, container := range rules.Objects(rules.Object(m, "spec"), name) {
			resources := rules.Object(container, "resources")
			limits := rules.Object(resources, "limits")
			if len(limits) == 0 {
				continue
			}
			requests := rules.Object(resources, "requests")
			if requests == nil {
				requests = map[string]any{}
				resources["requests"] = requests
			}
			rules.Complete(requests, limits)
		}
	}
}
