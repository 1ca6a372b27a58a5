package updates

import (
	"maps"
	"slices"

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
		if !sameNames(before, after) {
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

// sameNames reports whether two lists have the same containers.
func sameNames(a, b []map[string]any) bool {
	return slices.EqualFunc(a, b, func(a, b map[string]any) bool { return a["name"] == b["name"] })
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
	if !ordered(c, before, after, at) {
		return
	}
	for _, list := range containerLists {
		had := rules.Objects(before, list)
		for i, container := range rules.Objects(after, list) {
			resizedContainer(c, had[i], container, at.Field(list).Item(i))
		}
	}
}

// ordered checks that a pod has the same containers as before, in the same order.
func ordered(c *rules.Check, before, after map[string]any, at *field.Path) bool {
	same := true
	for _, list := range containerLists {
		had, has := rules.Objects(before, list), rules.Objects(after, list)
		if len(had) != len(has) {
			c.Forbidden(at.Field(list), list+" may not be added or removed on resize")
			same = false
			continue
		}
		for i, container := range has {
			if had[i]["name"] != container["name"] {
				c.Forbidden(at.Field(list).Item(i).Field("name"), list+" may not be renamed or reordered on resize")
				same = false
			}
		}
	}
	return same
}

// resizedContainer checks the resources of a container: no amount is removed, and only CPU and
// memory change.
func resizedContainer(c *rules.Check, had, container map[string]any, at *field.Path) {
	init := at.Parent.Name == "initContainers"
	kept(c, rules.Object(had, "resources"), rules.Object(container, "resources"), at.Field("resources"))
	if !rules.Same(unsized(container), unsized(had)) {
		if init {
			c.Forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
		} else {
			c.Forbidden(at.Parent.Parent, "only cpu and memory resources are mutable")
		}
	}
	if init {
		resizedOnce(c, had, container, at)
	}
}

// unsized returns a container without its amounts of CPU and memory.
func unsized(container map[string]any) map[string]any {
	left := rules.Without(container, "resources")
	for _, part := range []string{"limits", "requests"} {
		left[part] = emptied(rules.Without(rules.Object(container, "resources", part), compute.Resources[:]...))
	}
	return left
}

// emptied returns nil for an empty map.
func emptied(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

// kept checks that no amount is removed.
func kept(c *rules.Check, before, after map[string]any, at *field.Path) {
	what := "resource "
	if at.Parent.Name == "spec" {
		what = "pod-level resource "
	}
	for _, part := range []string{"limits", "requests"} {
		now := rules.Object(after, part)
		for name := range rules.Object(before, part) {
			if now[name] == nil {
				c.Forbidden(at.Field(part), what+part+" cannot be removed")
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
	switch {
	case had == nil && has == nil:
	case had != nil && has == nil:
		c.Forbidden(at.Field("resources"), "pod-level resources cannot be removed")
	default:
		kept(c, had, has, at.Field("resources"))
		if !rules.Same(unsized(map[string]any{"resources": had}), unsized(map[string]any{"resources": has})) || !rules.Same(had["claims"], has["claims"]) {
			c.Forbidden(at, "only cpu and memory resources are mutable at pod-level")
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
