package scheduling

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// groupStatus checks the status of a group: its conditions, and that the claims are those of the
// group.
func groupStatus(c *rules.Check, m, _ map[string]any, at *field.Path) {
	c.Conditions(rules.Objects(m, "conditions"), at.Field("conditions"))
	names := map[string]bool{}
	for _, claim := range rules.Objects(rules.Object(c.Root, "spec"), "resourceClaims") {
		names[rules.Text(claim, "name")] = true
	}
	for i, claim := range rules.Objects(m, "resourceClaimStatuses") {
		at := at.Field("resourceClaimStatuses").Item(i)
		if name := rules.Text(claim, "name"); !names[name] {
			c.Invalid(at.Field("name"), name, "must match the name of an entry in `spec.resourceClaims`")
		}
		c.Must(validation.IsDNS1123Subdomain, rules.Text(claim, "resourceClaimName"), at.Field("resourceClaimName"))
	}
}

// showGroupPolicy returns how a group is scheduled.
func showGroupPolicy(o *cell.Object) any {
	if o.Get("spec", "schedulingPolicy", "gang").Exists() {
		return "Gang"
	}
	return "Basic"
}

// showGroupStatus returns whether a group is scheduled, or why it is disrupted.
func showGroupStatus(o *cell.Object) any {
	conditions := o.Status.Get("conditions")
	if disrupted := cell.Condition(conditions, "DisruptionTarget"); disrupted.Exists() {
		return disrupted.Get("reason").Text()
	}
	switch scheduled := cell.Condition(conditions, "PodGroupScheduled"); {
	case !scheduled.Exists():
		return "Pending"
	case scheduled.Get("status").Text() == "True":
		return "Scheduled"
	}
	return "Unschedulable"
}
