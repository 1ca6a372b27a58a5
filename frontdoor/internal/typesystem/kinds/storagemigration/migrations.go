package storagemigration

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// The conditions of a migration that has ended.
const succeeded, failed = "Succeeded", "Failed"

// migratedResource checks the name of the type whose objects are written again.
func migratedResource(c *rules.Check, m, _ map[string]any, at *field.Path) {
	target, at := rules.Object(m, "resource"), at.Field("resource")
	if name := rules.Text(target, "resource"); name == "" {
		c.Required(at.Field("resource"), "resource is required to be set")
	} else {
		c.Must(validation.IsDNS1035Label, name, at.Field("resource"))
	}
	if group := rules.Text(target, "group"); group != "" {
		c.Must(validation.IsDNS1123Subdomain, group, at.Field("group"))
	}
}

// migrationEnds checks that a migration ends once, in one way.
func migrationEnds(c *rules.Check, m, old map[string]any, at *field.Path) {
	at = at.Field("conditions")
	if holds(m, succeeded) && holds(m, failed) {
		c.Invalid(at, m["conditions"], "Both success and failed conditions cannot be true at the same time")
	}
	if holds(old, succeeded) && !holds(m, succeeded) {
		c.Invalid(at, m["conditions"], "Success condition cannot be set to false once it is true")
	}
	if holds(old, failed) && !holds(m, failed) {
		c.Invalid(at, m["conditions"], "Failed condition cannot be set to false once it is true")
	}
}

// holds reports whether a status has a condition that is true.
func holds(status map[string]any, kind string) bool {
	for _, condition := range rules.ConditionsOf(map[string]any{"status": status}, "") {
		if rules.Text(condition, "type") == kind && rules.Text(condition, "status") == "True" {
			return true
		}
	}
	return false
}

// showMigratedResource returns the name of the type with its group.
func showMigratedResource(o *cell.Object) any {
	target := o.Spec.Get("resource")
	name, group := target.Get("resource").Text(), target.Get("group").Text()
	if group == "" {
		return name
	}
	return name + "." + group
}

// showMigrationState returns the last of the conditions that hold.
func showMigrationState(o *cell.Object) any {
	state := "Unknown"
	for condition := range o.Status.Get("conditions").Items() {
		switch kind := condition.Get("type").Text(); kind {
		case "Running", failed, succeeded:
			if condition.Get("status").Text() == "True" {
				state = kind
			}
		}
	}
	return state
}
