package compute

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// wholePodResources checks the resources of a whole pod: which there can be, and that they
// are enough for its containers.
func wholePodResources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	whole := rules.Object(m, "resources")
	if whole == nil || rules.Text(rules.Object(m, "os"), "name") == "windows" {
		return // forbidden, and reported as such
	}
	at = at.Field("resources")
	if whole["claims"] != nil {
		c.Forbidden(at.Field("claims"), "claims may not be set for Resources at pod-level")
	}
	for _, part := range [...]string{"limits", "requests"} {
		for name := range rules.Object(whole, part) {
			if !ofPods(name) {
				c.NotSupported(at.Field(part).Entry(name), name, "cpu", "hugepages-", "memory")
			}
		}
	}
	resources.Container(c, whole, at)
	enough(c, m, rules.Object(whole, "requests"), at.Field("requests"))
	limits := rules.Object(whole, "limits")
	for i, container := range rules.Objects(m, "containers") {
		for name, value := range rules.Object(container, "resources", "limits") {
			limit := amount(limits[name])
			if own := amount(value); limits[name] != nil && own.Cmp(limit) > 0 {
				c.Invalid(at.Field("containers").Item(i).Entry(name).Field("limits"), value, "must be less than or equal to pod limits of "+limit.String())
			}
		}
	}
	for name, value := range limits {
		limit := amount(value)
		if sum := sumOf(m, name); strings.HasPrefix(name, resources.HugePages) && sum.Cmp(limit) > 0 {
			c.Invalid(at.Field("limits").Entry(name), value, "must be greater than or equal to aggregate container limits of "+sum.String())
		}
	}
}

// ofPods reports whether a whole pod can have a resource.
func ofPods(name string) bool {
	return slices.Contains(Resources[:], name) || strings.HasPrefix(name, resources.HugePages)
}

// enough checks that the requests of a pod are at least those of its containers.
func enough(c *rules.Check, spec, requests map[string]any, at *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		own := amount(requests[name])
		if sum, ok := requestOfContainers(spec, name); ok && sum.Cmp(own) > 0 {
			c.Invalid(at.Entry(name), requests[name], "must be greater than or equal to aggregate container requests of "+sum.String())
		}
	}
}

// sumOf returns the limits of all containers for a resource that cannot be overcommitted,
// whose limits are requests.
func sumOf(spec map[string]any, name string) resource.Quantity {
	sum, _ := requestOfContainers(spec, name)
	return sum
}
