package pods

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// standard are the resources that every node has.
var standard = map[string]bool{"cpu": true, "memory": true, "ephemeral-storage": true, "storage": true}

// requestsWithinLimits: nobody asks for more than what is allowed. Resources of
// extensions are whole, and asked for exactly.
func requestsWithinLimits(c *rules.Check, m, _ map[string]any, at *field.Path) {
	limits, requests := rules.Object(m, "limits"), rules.Object(m, "requests")
	for _, side := range [...]string{"limits", "requests"} {
		for name, value := range rules.Object(m, side) {
			if !standard[name] {
				resourceOfNode(c, name, value, at.Field(side).Entry(name))
			}
		}
	}
	for name, value := range requests {
		limit, limited := limits[name]
		exact := !standard[name]
		switch {
		case limited:
			if problem := within(name, value, limit); problem != "" {
				c.Invalid(at.Field("requests"), value, problem)
			}
		case exact && !strings.HasPrefix(name, "hugepages-"):
			c.Required(at.Field("limits"), "Limit must be set for non overcommitable resources")
		}
	}
	if pages, others := hugePages(limits, requests); pages && !others {
		c.Forbidden(at, "HugePages require cpu or memory")
	}
}

// resourceOfNode checks a resource that not every node has.
func resourceOfNode(c *rules.Check, name string, value any, at *field.Path) {
	if strings.HasPrefix(name, "hugepages-") {
		return
	}
	if !strings.Contains(name, "/") {
		c.Invalid(at, name, "must be a standard resource type or fully qualified")
		return
	}
	if q := rules.Quantity(value); q.MilliValue()%1000 != 0 {
		c.Invalid(at, value, "must be an integer")
	}
}

// within says what is wrong with a request beside its limit; "" when nothing is.
func within(name string, value, limit any) string {
	if value == limit {
		return ""
	}
	asked, allowed := rules.Quantity(value), rules.Quantity(limit)
	switch order := asked.Cmp(allowed); {
	case order != 0 && !standard[name]:
		return fmt.Sprintf("must be equal to %s limit of %v", name, limit)
	case order > 0:
		return fmt.Sprintf("must be less than or equal to %s limit of %v", name, limit)
	}
	return ""
}

// hugePages tells whether large pages are used, and whether CPU or memory are.
func hugePages(all ...map[string]any) (pages, others bool) {
	for _, side := range all {
		for name := range side {
			pages = pages || strings.HasPrefix(name, "hugepages-")
			others = others || name == "cpu" || name == "memory"
		}
	}
	return pages, others
}

// podRequests asks for what the limits allow, where nothing is asked for.
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

// valueOrSource: a variable has a value or says where it comes from.
func valueOrSource(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["valueFrom"] != nil && rules.Text(m, "value") != "" {
		c.Invalid(at.Field("valueFrom"), "", "may not be specified when `value` is not empty")
	}
}

// Fields of a pod that variables and files can have as their value.
var (
	ofVariables = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.podIP", "status.podIPs"}
	ofFiles = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
)

func envField(c *rules.Check, m, _ map[string]any, at *field.Path) {
	podField(c, rules.Object(m, "fieldRef"), ofVariables, at.Field("fieldRef"))
}

func volumeField(c *rules.Check, m, _ map[string]any, at *field.Path) {
	podField(c, rules.Object(m, "fieldRef"), ofFiles, at.Field("fieldRef"))
	if reference := rules.Object(m, "resourceFieldRef"); reference != nil && rules.Text(reference, "containerName") == "" {
		c.Required(at.Field("resourceFieldRef").Field("containerName"), "")
	}
}

// podField checks a reference to a field of the pod, or to a single label or
// annotation.
func podField(c *rules.Check, reference map[string]any, allowed []string, at *field.Path) {
	path := rules.Text(reference, "fieldPath")
	if path == "" {
		return // required, and reported as such
	}
	at = at.Field("fieldPath")
	if field, key, ok := strings.Cut(path, "["); ok && strings.HasSuffix(key, "']") && strings.HasPrefix(key, "'") {
		key = key[1 : len(key)-2]
		switch field {
		case "metadata.annotations":
			c.Must(format.AnnotationKey, key, at)
			return
		case "metadata.labels":
			c.Must(validation.IsQualifiedName, key, at)
			return
		}
		c.Invalid(at, path, "does not support subscript")
		return
	}
	for _, name := range allowed {
		if path == name {
			return
		}
	}
	c.NotSupported(at, path, allowed...)
}

// resourceField: a value can be what a container may use, or asks for.
func resourceField(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name := rules.Text(m, "resource")
	side, resource, _ := strings.Cut(name, ".")
	if name == "" || (side == "limits" || side == "requests") &&
		(standard[resource] && resource != "storage" || strings.HasPrefix(resource, "hugepages-")) {
		return
	}
	c.NotSupported(at.Field("resource"), name, "limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory")
}
