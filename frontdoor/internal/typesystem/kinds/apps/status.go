package apps

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// wholes lists the counts of replicas that another one includes.
var wholes = []struct {
	whole, called string
	parts         []string
}{
	{"replicas", "status.replicas", []string{"fullyLabeledReplicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}},
	{"readyReplicas", "readyReplicas", []string{"availableReplicas"}},
}

// partsOfWhole: there are no more replicas of some sort than there are at all.
func partsOfWhole(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, w := range wholes {
		for _, part := range w.parts {
			if n, given := rules.Whole(m[part]); given && n > rules.Number(m, w.whole) {
				c.Invalid(at.Field(part), n, "cannot be greater than "+w.called)
			}
		}
	}
}

// collisionsAddUp: names that collided are not tried again.
func collisionsAddUp(c *rules.Check, m, old map[string]any, at *field.Path) {
	before, counted := rules.Whole(old["collisionCount"])
	if n := rules.Number(m, "collisionCount"); counted && (n < before || m["collisionCount"] == nil) {
		c.Invalid(at.Field("collisionCount"), n, "cannot be decremented")
	}
}
