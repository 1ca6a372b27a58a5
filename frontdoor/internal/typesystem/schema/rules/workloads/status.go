package workloads

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

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

// What a condition may say.
var (
	conditionStates = []string{"False", "True", "Unknown"}
	reasonPattern   = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

const (
	longestReason  = 1 << 10
	longestMessage = 1 << 15
)

// conditions: each is of a type of its own and says since when it holds, and why.
func conditions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	seen := map[string]bool{}
	for i, condition := range rules.Objects(m, "conditions") {
		here := at.Field("conditions").Item(i)
		kind := rules.Text(condition, "type")
		if kind == "" {
			c.Required(here.Field("type"), "")
		} else if seen[kind] {
			c.Duplicate(here.Field("type"), kind)
		}
		seen[kind] = true
		c.Must(validation.IsQualifiedName, kind, here.Field("type"))
		conditionSays(c, condition, here)
	}
}

// conditionSays checks all of a condition but its type.
func conditionSays(c *rules.Check, condition map[string]any, at *field.Path) {
	if state := rules.Text(condition, "status"); !slices.Contains(conditionStates, state) {
		c.NotSupported(at.Field("status"), state, conditionStates...)
	}
	if seen := rules.Number(condition, "observedGeneration"); seen < 0 {
		c.Invalid(at.Field("observedGeneration"), seen, "must be greater than or equal to zero")
	}
	if rules.Empty(condition["lastTransitionTime"]) {
		c.Required(at.Field("lastTransitionTime"), "must be set")
	}
	reason, message := rules.Text(condition, "reason"), rules.Text(condition, "message")
	switch {
	case reason == "":
		c.Required(at.Field("reason"), "must be set")
	case len(reason) > longestReason:
		c.TooLong(at.Field("reason"), longestReason)
	case !reasonPattern.MatchString(reason):
		c.Invalid(at.Field("reason"), reason, fmt.Sprintf("a condition reason must match %s", strings.Trim(reasonPattern.String(), "^$")))
	}
	if len(message) > longestMessage {
		c.TooLong(at.Field("message"), longestMessage)
	}
}
