package apps

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// wholes lists the replica counts that include others.
var wholes = []struct {
	whole, called string
	parts         []string
}{
	{"replicas", "status.replicas", []string{"fullyLabeledReplicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}},
	{"readyReplicas", "readyReplicas", []string{"availableReplicas"}},
}

// partsOfWhole checks that no partial count exceeds the count that includes it.
func partsOfWhole(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, w := range wholes {
		for _, part := range w.parts {
			if n, given := rules.Whole(m[part]); given && n > rules.Number(m, w.whole) {
				called := w.called
				if c.Root["kind"] == "StatefulSet" {
					called = "status." + w.whole
				}
				c.Invalid(at.Field(part), n, "cannot be greater than "+called)
			}
		}
	}
}

// collisionsAddUp checks that collisionCount does not decrease: the controller must not
// reuse a name that collided.
func collisionsAddUp(c *rules.Check, m, old map[string]any, at *field.Path) {
	before, counted := rules.Whole(old["collisionCount"])
	if n := rules.Number(m, "collisionCount"); counted && (n < before || m["collisionCount"] == nil) {
		c.Invalid(at.Field("collisionCount"), n, "cannot be decremented")
	}
}
