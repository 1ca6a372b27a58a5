package events

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"k8s.io/apimachinery/pkg/util/validation"
)

// longestSeen limits reportingInstance, action and reason of an event, longestNote its note, in
// bytes.
const (
	longestSeen = 128
	longestNote = 1024
)

// eventNames maps the names of an event's fields in the core group to those in the events
// group. Events are stored in the core group's form, and errors use its names.
var eventNames = map[string]string{"involvedObject": "regarding", "message": "note", "source": "deprecatedSource",
	"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
	"type": "type", "eventTime": "eventTime", "action": "action", "reason": "reason", "related": "related",
	"reportingController": "reportingController", "reportingInstance": "reportingInstance"}

// newEvent has the rules of section "Event resource, version v1". All fields of an existing
// event but the series are immutable.
func newEvent(c *rules.Check, m, old map[string]any, at *field.Path) {
	anyEvent(c, m, old, at)
	if old == nil {
		firstOfNew(c, m, at)
	}
	for core, name := range eventNames {
		if old == nil || rules.Same(m[name], old[name]) {
			continue
		}
		value := m[name]
		if _, text := old[name].(string); text && value == nil && !strings.Contains(core, "Time") {
			value = ""
		}
		c.Invalid(at.Field(core), value, "field is immutable")
	}
	if last := rules.Object(m, "series"); last != nil && !rules.Same(last, old["series"]) {
		series(c, last, at.Field("series"))
	}
}

// firstOfNew checks that a new event has a time and a valid type, and no deprecated fields.
func firstOfNew(c *rules.Check, m map[string]any, at *field.Path) {
	if rules.Empty(m["eventTime"]) {
		c.Required(at.Field("eventTime"), "")
	}
	if kind := rules.Text(m, "type"); kind != "Normal" && kind != "Warning" {
		c.Invalid(at.Field("type"), "", "has invalid value: "+kind)
	}
	for _, core := range [...]string{"firstTimestamp", "lastTimestamp", "count"} {
		if value := m[eventNames[core]]; !rules.Empty(value) && value != int64(0) {
			c.Invalid(at.Field(core), "", "needs to be unset")
		}
	}
	if source := rules.Object(m, eventNames["source"]); rules.Text(source, "component") != "" || rules.Text(source, "host") != "" {
		c.Invalid(at.Field("source"), "", "needs to be unset")
	}
}

// series checks that a series has a count of at least 2 and a time.
func series(c *rules.Check, series map[string]any, at *field.Path) {
	if rules.Number(series, "count") < 2 {
		c.Invalid(at.Field("count"), "", "should be at least 2")
	}
	if rules.Empty(series["lastObservedTime"]) {
		c.Required(at.Field("lastObservedTime"), "")
	}
}

// anyEvent has the rules for all versions. An event with an eventTime is of the newer form,
// which has more required fields.
func anyEvent(c *rules.Check, m, _ map[string]any, at *field.Path) {
	about, reporter, note := rules.Object(m, "involvedObject"), "reportingComponent", rules.Text(m, "message")
	if about == nil {
		about, reporter, note = rules.Object(m, "regarding"), "reportingController", rules.Text(m, "note")
	}
	fresh := !rules.Empty(m["eventTime"])
	if of := rules.Text(about, "namespace"); !validNamespace(c, of, fresh) {
		c.Invalid(at.Field("involvedObject").Field("namespace"), of, "does not match event.namespace")
	}
	if !fresh {
		return
	}
	name := rules.Text(m, reporter)
	if name == "" {
		c.Required(at.Field(reporter), "")
	}
	for _, problem := range validation.IsQualifiedName(name) {
		c.Invalid(at.Field(reporter), name, problem)
	}
	for _, name := range [...]string{"reportingInstance", "action", "reason"} {
		value := rules.Text(m, name)
		if value == "" {
			c.Required(at.Field(name), "")
		}
		atMost(c, value, longestSeen, at.Field(name))
	}
	atMost(c, note, longestNote, at.Field("message"))
}

// validNamespace reports whether an event may be in its namespace. Events about
// cluster-scoped objects belong in the default namespace; those of the newer form may also
// be in the system namespace. Events about other objects belong in the namespace of the
// object; those of the newer form may be anywhere.
func validNamespace(c *rules.Check, of string, fresh bool) bool {
	namespace := rules.Text(rules.Object(c.Root, "metadata"), "namespace")
	switch {
	case of == "":
		return namespace == "default" || fresh && namespace == c.Vocabulary.Namespace("system")
	case fresh:
		return true
	}
	return of == namespace
}

// atMost limits a string. The error does not contain the value, because that can be long.
func atMost(c *rules.Check, value string, limit int, at *field.Path) {
	if len(value) > limit {
		c.Invalid(at, "", fmt.Sprintf("can have at most %d characters", limit))
	}
}
