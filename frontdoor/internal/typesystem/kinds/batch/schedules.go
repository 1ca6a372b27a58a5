package batch

import (
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // images have no zones of their own

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// zonePart matches one part of the name of a time zone.
var zonePart = regexp.MustCompile(`^[A-Za-z0-9_+][A-Za-z0-9.\-_+]{0,255}$`)

// scheduleZone checks the time zone of a schedule. Neither a zone nor a schedule that names
// one is checked again until it changes, because zones come and go.
func scheduleZone(c *rules.Check, spec, old map[string]any, at *field.Path) {
	schedule, zone := rules.Text(spec, "schedule"), spec["timeZone"]
	if strings.Contains(schedule, "TZ") {
		switch {
		case zone != nil:
			c.Invalid(at.Field("schedule"), schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
		case !strings.Contains(rules.Text(old, "schedule"), "TZ"):
			c.Invalid(at.Field("schedule"), schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
		}
	}
	if zone == nil || old != nil && zone == old["timeZone"] {
		return
	}
	if problem := wrongZone(rules.Text(spec, "timeZone")); problem != "" {
		c.Invalid(at.Field("timeZone"), zone, problem)
	}
}

// wrongZone returns what is wrong with the name of a time zone.
func wrongZone(name string) string {
	if name == "" {
		return "timeZone must be nil or non-empty string"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || !zonePart.MatchString(part) {
			return "unknown time zone " + name
		}
	}
	if strings.EqualFold(name, "Local") {
		return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
	}
	if _, err := time.LoadLocation(name); err != nil {
		return err.Error()
	}
	return ""
}
