package pods

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
func resized(c *rules.Check, before, after map[string]any, at *field.Path) {
	if compute.Class(before) != compute.Class(after) {
		c.Invalid(at, compute.Class(after), "Pod QOS Class may not change as a result of resizing")
	}
	for _, list := range containerLists {
		had := rules.Objects(before, list)
		for i, container := range rules.Objects(after, list) {
			where := at.Field(list).Item(i).Field("resources")
			for _, part := range []string{"limits", "requests"} {
				amounts(c, rules.Object(had[i], "resources", part), rules.Object(container, "resources", part), where.Field(part))
			}
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

// gates checks that scheduling gates are only removed.
func gates(c *rules.Check, before, after map[string]any, at *field.Path) {
	had := map[string]bool{}
	for _, gate := range rules.Objects(before, "schedulingGates") {
		had[rules.Text(gate, "name")] = true
	}
	for i, gate := range rules.Objects(after, "schedulingGates") {
		if name := rules.Text(gate, "name"); !had[name] {
			c.Forbidden(at.Field("schedulingGates").Item(i), "only deletion is allowed, but found new scheduling gate '"+name+"'")
		}
	}
}
