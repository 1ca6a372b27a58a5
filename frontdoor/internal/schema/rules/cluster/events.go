package cluster

import (
	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
)

// longestSeen bounds what an event says of who saw what, in bytes.
const longestSeen = 128

// newEvent holds the rules of section "Event resource, version v1": what a new event
// must say. Of one that is there only the series changes.
func newEvent(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil {
		for name := range rules.Without(m, "metadata", "series") {
			if !rules.Same(m[name], old[name]) {
				c.Invalid(at.Field(name), m[name], "field is immutable")
			}
		}
		for name := range rules.Without(old, "metadata", "series") {
			if _, still := m[name]; !still && !rules.Empty(old[name]) {
				c.Invalid(at.Field(name), nil, "field is immutable")
			}
		}
	} else {
		for _, name := range [...]string{"action", "reason", "reportingController", "reportingInstance", "eventTime"} {
			if rules.Empty(m[name]) {
				c.Required(at.Field(name), "")
			}
		}
		if kind := rules.Text(m, "type"); kind != "Normal" && kind != "Warning" {
			c.NotSupported(at.Field("type"), kind, "Normal", "Warning")
		}
		deprecated(c, m, at)
		eventNamespace(c, m, at)
	}
	series(c, m, old, at)
}

// deprecated: a new event does not speak in the fields of an older version.
func deprecated(c *rules.Check, m map[string]any, at *field.Path) {
	for _, name := range [...]string{"deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount"} {
		if value := m[name]; !rules.Empty(value) && value != int64(0) {
			c.Invalid(at.Field(name), value, "needs to be unset")
		}
	}
	for _, name := range [...]string{"component", "host"} {
		if value := rules.Text(rules.Object(m, "deprecatedSource"), name); value != "" {
			c.Invalid(at.Field("deprecatedSource").Field(name), value, "needs to be unset")
		}
	}
}

// series: an event that happened once is none.
func series(c *rules.Check, m, old map[string]any, at *field.Path) {
	series, at := rules.Object(m, "series"), at.Field("series")
	if series == nil || rules.Same(series, old["series"]) {
		return
	}
	if rules.Number(series, "count") < 2 {
		c.Invalid(at.Field("count"), series["count"], "should be at least 2")
	}
	if rules.Empty(series["lastObservedTime"]) {
		c.Required(at.Field("lastObservedTime"), "")
	}
}

// oldEvent holds the rules of events in the older versions. One that says when it
// happened is of the newer kind, and says the rest too.
func oldEvent(c *rules.Check, m, _ map[string]any, at *field.Path) {
	eventNamespace(c, m, at)
	if rules.Empty(m["eventTime"]) {
		return
	}
	reporter := "reportingController"
	if _, core := m["involvedObject"]; core {
		reporter = "reportingComponent"
	}
	for _, name := range [...]string{reporter, "reportingInstance", "action", "reason"} {
		value := rules.Text(m, name)
		if value == "" {
			c.Required(at.Field(name), "")
		}
		if len(value) > longestSeen && name != reporter {
			c.Invalid(at.Field(name), "", "can have at most 128 characters")
		}
	}
}

// eventNamespace: an event stands in the namespace of the object that it is about,
// or in the default or system one when that has none.
func eventNamespace(c *rules.Check, m map[string]any, at *field.Path) {
	namespace := rules.Text(rules.Object(m, "metadata"), "namespace")
	for _, name := range [...]string{"involvedObject", "regarding"} {
		about := rules.Object(m, name)
		if about == nil {
			continue
		}
		of := rules.Text(about, "namespace")
		if of != namespace && !(of == "" && (namespace == "default" || namespace == c.Vocabulary.Namespace("system"))) {
			c.Invalid(at.Field(name).Field("namespace"), of, "does not match event.namespace")
		}
	}
}
