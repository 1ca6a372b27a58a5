package updates

import (
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/compute"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// resizing is the subresource that changes the resources of a pod that runs.
const resizing = "resize"

// keepAllButResources reverts all changes but those of resources in a write of the
// subresource resize.
func keepAllButResources(w kinds.Write, obj, old map[string]any) {
	if w.Subresource != resizing {
		return
	}
	changed := rules.AsObject(obj["spec"])
	spec := maps.Clone(rules.AsObject(old["spec"]))
	for _, list := range containerLists {
		before, after := rules.Objects(spec, list), rules.Objects(changed, list)
		if len(before) != len(after) {
			spec[list] = changed[list] // validation refuses it
			continue
		}
		resized := make([]any, len(before))
		for i, container := range before {
			container = maps.Clone(container)
			for _, name := range []string{"resources", "resizePolicy"} {
				kinds.Keep(container, after[i], name)
			}
			resized[i] = container
		}
		if len(resized) > 0 {
			spec[list] = resized
		}
	}
	if w.On("InPlacePodLevelResourcesVerticalScaling") {
		kinds.Keep(spec, changed, "resources")
	}
	obj["spec"] = spec
	kinds.Keep(obj, old, "status")
	for _, name := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		kinds.Keep(tree.Object(obj, "metadata"), tree.Object(old, "metadata"), name)
	}
}

// resized checks that only CPU and memory change, that no amount is removed, and that the
// pod keeps its quality of service.
func resized(c *rules.Check, old, after map[string]any, at *field.Path) {
	before := rules.Object(old, "spec")
	if rules.Text(rules.Object(before, "os"), "name") == "windows" {
		c.Forbidden(at, "windows pods cannot be resized")
		return
	}
	if compute.Class(before) != compute.Class(after) {
		c.Invalid(at, rules.Text(rules.Object(old, "status"), "qosClass"), "Pod QOS Class may not change as a result of resizing")
	}
	if !resizable(old) {
		c.Forbidden(at, "Pod running on node without support for resize")
	}
	whole(c, before, after, at)
	for _, list := range containerLists {
		had := rules.Objects(before, list)
		for i, container := range rules.Objects(after, list) {
			where := at.Field(list).Item(i)
			if had[i]["name"] != container["name"] {
				c.Invalid(where.Field("name"), container["name"], "containers may not be reordered")
				return
			}
			for _, part := range []string{"limits", "requests"} {
				amounts(c, rules.Object(had[i], "resources", part), rules.Object(container, "resources", part), where.Field("resources").Field(part))
			}
			if list == "initContainers" {
				resizedOnce(c, had[i], container, where)
			}
		}
	}
}

// resizable reports whether the node of a pod reports the resources of running containers, as
// nodes do that can change them.
func resizable(pod map[string]any) bool {
	for _, container := range rules.Objects(rules.Object(pod, "status"), "containerStatuses") {
		if rules.Object(container, "state")["running"] != nil {
			return container["resources"] != nil
		}
	}
	return true
}

// whole checks the resources of the pod itself.
func whole(c *rules.Check, before, after map[string]any, at *field.Path) {
	had, has := rules.Object(before, "resources"), rules.Object(after, "resources")
	at = at.Field("resources")
	switch {
	case had == nil && has == nil:
	case had != nil && has == nil:
		c.Forbidden(at, "pod-level resources cannot be removed")
	case !rules.Same(rules.Without(had, "limits", "requests"), rules.Without(has, "limits", "requests")):
		c.Forbidden(at, "only cpu and memory resources are mutable at pod-level")
	default:
		for _, part := range []string{"limits", "requests"} {
			amounts(c, rules.Object(had, part), rules.Object(has, part), at.Field(part))
		}
	}
}

// resizedOnce checks an init container that does not run beside the others: it cannot be
// restarted to be resized.
func resizedOnce(c *rules.Check, had, container map[string]any, at *field.Path) {
	if container["restartPolicy"] == "Always" || rules.Same(had, container) {
		return
	}
	for _, policy := range rules.Objects(container, "resizePolicy") {
		if policy["restartPolicy"] == "RestartContainer" {
			c.Forbidden(at, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
		}
	}
}

func amounts(c *rules.Check, before, after map[string]any, at *field.Path) {
	others := func(m map[string]any) map[string]any { return rules.Without(m, compute.Resources[:]...) }
	if !rules.Same(others(before), others(after)) {
		c.Forbidden(at, "only cpu and memory resources are mutable")
	}
	for _, name := range compute.Resources {
		if before[name] != nil && after[name] == nil {
			c.Forbidden(at, "resource "+at.Name+" cannot be removed")
		}
	}
}
