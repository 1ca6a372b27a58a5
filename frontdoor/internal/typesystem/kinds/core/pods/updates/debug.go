package updates

import (
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// debugging is the subresource that adds ephemeral containers.
const debugging = "ephemeralcontainers"

// keepAllButEphemeralContainers reverts all changes but those of ephemeral containers in a
// write of the subresource ephemeralcontainers.
func keepAllButEphemeralContainers(w kinds.Write, obj, old map[string]any) {
	if w.Subresource != debugging {
		return
	}
	added, given := rules.AsObject(obj["spec"])["ephemeralContainers"]
	for field := range obj {
		if field != "metadata" {
			kinds.Keep(obj, old, field)
		}
	}
	spec := maps.Clone(rules.AsObject(old["spec"]))
	delete(spec, "ephemeralContainers")
	if given {
		spec["ephemeralContainers"] = added
	}
	obj["spec"], obj["status"] = spec, old["status"]
	for _, field := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		kinds.Keep(tree.Object(obj, "metadata"), tree.Object(old, "metadata"), field)
	}
}

// debuggers checks that ephemeral containers are only added.
func debuggers(c *rules.Check, before, after map[string]any, at *field.Path) {
	const name = "ephemeralContainers"
	now := map[string]map[string]any{}
	for _, container := range rules.Objects(after, name) {
		now[rules.Text(container, "name")] = container
	}
	for _, container := range rules.Objects(before, name) {
		switch is, ok := now[rules.Text(container, "name")]; {
		case !ok:
			c.Forbidden(at.Field(name), "existing ephemeral containers "+field.Display(container["name"])+" may not be removed")
		case !rules.Same(is, container):
			c.Forbidden(at.Field(name), "existing ephemeral containers "+field.Display(container["name"])+" may not be changed")
		}
	}
}
