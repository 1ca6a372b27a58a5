// Package resources validates the compute resources of containers and overheads. It serves
// "Resources and their fields" of the specification.
package resources

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Native are the native resources of containers, apart from huge pages.
var Native = map[string]bool{"cpu": true, "memory": true, "ephemeral-storage": true}

// HugePages is the prefix of the names of huge pages.
const HugePages = "hugepages-"

// Container validates, in the resources of a container, names and amounts of resources, and that requests do not
// exceed limits. Resources that cannot be overcommitted must have equal requests and
// limits, and extended resources are integers.
func Container(c *rules.Check, resources map[string]any, at *field.Path) {
	limits, requests := rules.Object(resources, "limits"), rules.Object(resources, "requests")
	if len(limits)+len(requests) == 0 {
		return
	}
	for _, side := range [...]string{"limits", "requests"} {
		for name, value := range rules.Object(resources, side) {
			if !Native[name] {
				uncommon(c, name, value, at.Field(side).Entry(name))
			}
		}
	}
	for name, value := range requests {
		limit, limited := limits[name]
		if !limited {
			if !overcommitted(c, name) {
				c.Required(at.Field("limits"), "Limit must be set for non overcommitable resources")
			}
			continue
		}
		if problem := withinLimit(name, value, limit, overcommitted(c, name)); problem != "" {
			c.Invalid(at.Field("requests"), value, problem)
		}
	}
	if pages, others := hugePages(limits, requests); pages && !others {
		c.Forbidden(at, "HugePages require cpu or memory")
	}
}

// Overhead validates resources that a pod needs besides its containers. Errors call them limits,
// as those of Kubernetes do.
func Overhead(c *rules.Check, resources map[string]any, at *field.Path) {
	for name, value := range resources {
		below := at.Field("limits").Entry(name)
		if !Native[name] {
			uncommon(c, name, value, below)
		}
		if q := rules.Quantity(value); q.Sign() < 0 {
			c.Invalid(below, value, "must be greater than or equal to 0")
		}
	}
	if pages, others := hugePages(resources); pages && !others {
		c.Forbidden(at, "HugePages require cpu or memory")
	}
}

// native reports whether a resource belongs to the project and is not an extended one.
func native(c *rules.Check, name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, c.Vocabulary.Qualified("", ""))
}

// Extended reports whether a name is that of an extended resource.
func Extended(c *rules.Check, name string) bool {
	return !native(c, name) && !strings.HasPrefix(name, "requests.") && len(validation.IsQualifiedName("requests."+name)) == 0
}

// overcommitted reports whether the request for a resource may be lower than its limit.
func overcommitted(c *rules.Check, name string) bool {
	return native(c, name) && !strings.HasPrefix(name, HugePages)
}

// ContainerName validates the name of a resource of containers.
func ContainerName(c *rules.Check, name string, at *field.Path) {
	if Native[name] {
		return
	}
	problems := validation.IsQualifiedName(name)
	for _, problem := range problems {
		c.Invalid(at, name, problem)
	}
	switch {
	case strings.HasPrefix(name, HugePages):
	case !strings.Contains(name, "/"):
		c.Invalid(at, name, "must be a standard resource for containers")
		if !ofQuotas[name] && len(problems) == 0 {
			c.Invalid(at, name, "must be a standard resource type or fully qualified")
		}
	case !native(c, name) && !Extended(c, name):
		c.Invalid(at, name, "doesn't follow extended resource name standard")
	}
}

// uncommon validates a resource that is not in Native.
func uncommon(c *rules.Check, name string, value any, at *field.Path) {
	ContainerName(c, name, at)
	q := rules.Quantity(value)
	switch size, pages := strings.CutPrefix(name, HugePages); {
	case pages:
		if page := rules.Quantity(size); page.Value() <= 0 || q.Value()%page.Value() != 0 {
			c.Invalid(at, value, q.String()+" is not positive integer multiple of "+name)
		}
	case strings.Contains(name, "/") && !native(c, name):
		if q.MilliValue()%1000 != 0 {
			c.Invalid(at, value, "must be an integer")
		}
	}
}

// ofQuotas are the names that are valid in quotas and claims, and not in containers.
var ofQuotas = map[string]bool{"storage": true, "pods": true, "services": true, "replicationcontrollers": true,
	"resourcequotas": true, "secrets": true, "configmaps": true, "persistentvolumeclaims": true}

// withinLimit returns the error of a request compared with its limit; "" for none.
func withinLimit(name string, value, limit any, less bool) string {
	if value == limit {
		return ""
	}
	requested, allowed := rules.Quantity(value), rules.Quantity(limit)
	switch order := requested.Cmp(allowed); {
	case order != 0 && !less:
		return fmt.Sprintf("must be equal to %s limit of %v", name, limit)
	case order > 0:
		return fmt.Sprintf("must be less than or equal to %s limit of %v", name, limit)
	}
	return ""
}

// hugePages reports whether huge pages are used, and whether CPU or memory are.
func hugePages(all ...map[string]any) (pages, others bool) {
	for _, side := range all {
		for name := range side {
			pages = pages || strings.HasPrefix(name, HugePages)
			others = others || name == "cpu" || name == "memory"
		}
	}
	return pages, others
}
