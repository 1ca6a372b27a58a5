package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
)

// podChanges: of a pod's spec only images, the deadline and further tolerations
// change once it runs.
func podChanges(c *Check, m, old map[string]any, at *field.Path) {
	before, after := objectOf(old, "spec"), objectOf(m, "spec")
	if before == nil || after == nil {
		return
	}
	at = at.Field("spec")
	for _, name := range []string{"containers", "initContainers"} {
		if len(listOf(before, name)) != len(listOf(after, name)) {
			c.Forbidden(at.Field(name), "pod updates may not add or remove containers")
			return
		}
	}
	for _, toleration := range listOf(before, "tolerations") {
		if !slices.ContainsFunc(listOf(after, "tolerations"), func(t any) bool { return sameToleration(t, toleration) }) {
			c.Forbidden(at.Field("tolerations"), "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
	if !Same(fixedSpec(before), fixedSpec(after)) {
		c.Forbidden(at, "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "+
			"`spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations)")
	}
}

func sameToleration(a, b any) bool {
	without := func(t any) map[string]any {
		m, _ := t.(map[string]any)
		return without(m, "tolerationSeconds")
	}
	return Same(without(a), without(b))
}

// fixedSpec returns what may not change of a pod's spec.
func fixedSpec(spec map[string]any) map[string]any {
	fixed := without(spec, "activeDeadlineSeconds", "tolerations", "ephemeralContainers", "containers", "initContainers")
	for _, name := range []string{"containers", "initContainers"} {
		var list []any
		for _, container := range objectsOf(spec, name) {
			list = append(list, without(container, "image"))
		}
		fixed[name] = list
	}
	return fixed
}

// without returns a shallow copy without some members.
func without(m map[string]any, names ...string) map[string]any {
	left := make(map[string]any, len(m))
	for name, value := range m {
		if !slices.Contains(names, name) {
			left[name] = value
		}
	}
	return left
}

// podContainers: names are unique among all containers, and what they mount is
// there.
func podContainers(c *Check, m, _ map[string]any, at *field.Path) {
	volumes := map[string]bool{}
	for _, volume := range objectsOf(m, "volumes") {
		volumes[textOf(volume, "name")] = true
	}
	seen := map[string]bool{}
	for _, kind := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, container := range objectsOf(m, kind) {
			name := textOf(container, "name")
			where := at.Field(kind).Item(i)
			if seen[name] {
				c.Duplicate(where.Field("name"), name)
			}
			seen[name] = true
			for j, mount := range objectsOf(container, "volumeMounts") {
				if volume := textOf(mount, "name"); !volumes[volume] {
					c.NotFound(where.Field("volumeMounts").Item(j).Field("name"), volume)
				}
			}
			if kind != "initContainers" {
				continue
			}
			for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
				if container[probe] != nil {
					c.Forbidden(where.Field(probe), "must not be set for init containers")
				}
			}
		}
	}
}

// causeNotFound is the reason of a reference to something that is not there.
const causeNotFound = "FieldValueNotFound"

// hostNetworkPorts: on the host's network a container's port is the host's.
func hostNetworkPorts(c *Check, m, _ map[string]any, at *field.Path) {
	taken := map[string]bool{}
	for i, container := range objectsOf(m, "containers") {
		for j, port := range objectsOf(container, "ports") {
			where := at.Field("containers").Item(i).Field("ports").Item(j)
			host := numberOf(port, "hostPort")
			if m["hostNetwork"] == true && host != numberOf(port, "containerPort") {
				c.Invalid(where.Field("containerPort"), port["containerPort"], "must match `hostPort` when `hostNetwork` is true")
			}
			if host == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", textOf(port, "protocol"), textOf(port, "hostIP"), host)
			if taken[key] {
				c.Duplicate(where.Field("hostPort"), key)
			}
			taken[key] = true
		}
	}
}

func podDNS(c *Check, m, _ map[string]any, at *field.Path) {
	if m["dnsPolicy"] == "None" && len(listOf(objectOf(m, "dnsConfig"), "nameservers")) == 0 {
		c.Required(at.Field("dnsConfig").Field("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
	}
}

func containerPorts(c *Check, m, _ map[string]any, at *field.Path) {
	seen := map[string]bool{}
	for i, port := range objectsOf(m, "ports") {
		name := textOf(port, "name")
		if name != "" && seen[name] {
			c.Duplicate(at.Field("ports").Item(i).Field("name"), name)
		}
		seen[name] = true
	}
}

func valueOrSource(c *Check, m, _ map[string]any, at *field.Path) {
	if textOf(m, "value") != "" && m["valueFrom"] != nil {
		c.Invalid(at.Field("valueFrom"), "", "may not be specified when `value` is not empty")
	}
}

// requestsWithinLimits: nothing is below zero, and nobody asks for more than what
// is allowed. Resources of extensions are asked for exactly.
func requestsWithinLimits(c *Check, m, _ map[string]any, at *field.Path) {
	limits, requests := objectOf(m, "limits"), objectOf(m, "requests")
	for _, side := range []string{"limits", "requests"} {
		for name, value := range objectOf(m, side) {
			if q := quantityOf(value); q.Sign() < 0 {
				c.Invalid(at.Field(side).Entry(name), value, "must be greater than or equal to 0")
			}
		}
	}
	for name, value := range requests {
		limit, limited := limits[name]
		if !limited {
			continue
		}
		asked, allowed := quantityOf(value), quantityOf(limit)
		if asked.Cmp(allowed) > 0 {
			c.Invalid(at.Field("requests"), value, fmt.Sprintf("must be less than or equal to %s limit of %v", name, limit))
		} else if strings.HasPrefix(name, "hugepages-") && asked.Cmp(allowed) != 0 {
			c.Invalid(at.Field("requests"), value, fmt.Sprintf("must be equal to %s limit of %v", name, limit))
		}
	}
}

// quantityOf reads a quantity that Prepare has checked.
func quantityOf(value any) resource.Quantity {
	s, _ := value.(string)
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

func tolerationOperator(c *Check, m, _ map[string]any, at *field.Path) {
	operator := textOf(m, "operator")
	if textOf(m, "key") == "" && operator != "Exists" {
		c.Invalid(at.Field("operator"), operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	if operator == "Exists" && textOf(m, "value") != "" {
		c.Invalid(at.Field("value"), m["value"], "value must be empty when `operator` is 'Exists'")
	}
	if m["tolerationSeconds"] != nil && textOf(m, "effect") != "NoExecute" {
		c.Invalid(at.Field("effect"), textOf(m, "effect"), "effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
}

func escalation(c *Check, m, _ map[string]any, at *field.Path) {
	if m["privileged"] == true && m["allowPrivilegeEscalation"] == false {
		c.Invalid(at.Field("allowPrivilegeEscalation"), false, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
	}
}
