package checks

import (
	"strings"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func events() {
	s := Section("Event v1")

	const events = "events.platform.io/v1/events"
	s.Check("EV-01", "a new event with action, reason, reportingComponent, reportingInstance, eventTime", func(t *T) {
		body := t.Event()
		o := t.POST(t.In(events), body).OK().Obj()
		t.Eq("regarding.name (replaces involvedObject)", o.Str("regarding.name"), "a")
		t.Eq("eventTime (replaces firstTimestamp)", o.Str("eventTime"), body.Str("eventTime"))
		t.Eq("type", o.Str("type"), "Normal")
	})
	s.Check("EV-02", "type: only Normal or Warning", func(t *T) {
		t.POST(t.In(events), t.Event().Set("type", "Curious")).Status(422, "Invalid")
	})
	for id, fields := range map[string][]string{
		"EV-03": {"action"}, "EV-04": {"reason"}, "EV-05": {"reportingInstance"},
	} {
		s.Check(id, fields[0]+": required on creation", func(t *T) {
			body := t.Event()
			for _, f := range fields {
				delete(body, f)
			}
			t.POST(t.In(events), body).Status(422, "Invalid")
		})
	}
	for id, field := range map[string]Obj{
		"EV-06": {"deprecatedFirstTimestamp": "2026-01-01T00:00:00Z"},
		"EV-07": {"deprecatedLastTimestamp": "2026-01-01T00:00:00Z"},
		"EV-08": {"deprecatedSource": Obj{"component": "old", "host": "h"}},
	} {
		for name, value := range field {
			s.Check(id, name+": not permitted in new events", func(t *T) {
				t.POST(t.In(events), t.Event().Set(name, value)).Status(422, "Invalid")
			})
		}
	}
	s.Check("EV-10", "the field selector source finds an event without a source by its reporting controller", func(t *T) {
		name := t.POST(t.In(events), t.Event()).OK().Obj().Name()
		t.Eq("the event", strings.Join(t.GET(t.In("events")+"?fieldSelector=source%3Dexample.com/suite").OK().Obj().Names(), ","), name)
		t.Eq("no event", len(t.GET(t.In("events")+"?fieldSelector=source%3Dother").OK().Obj().List("items")), 0)
	})
	s.Check("EV-11", "field selectors by the names of the events group, in lists, watches and deletions", func(t *T) {
		o := t.POST(t.In(events), t.Event()).OK().Obj()
		for _, selector := range []string{"regarding.name%3Da", "reportingController%3Dexample.com/suite", "reason%3D" + o.Str("reason") + ",regarding.name%3Da"} {
			t.Eq("found by "+selector, strings.Join(t.GET(t.In(events)+"?fieldSelector="+selector).OK().Obj().Names(), ","), o.Name())
		}
		t.Eq("found by another name", len(t.GET(t.In(events)+"?fieldSelector=regarding.name%3Dz").OK().Obj().List("items")), 0)
		t.Watch(t.In(events)+"?resourceVersion=0&fieldSelector=regarding.name%3Da").Expect("ADDED", o.Name())
		t.DELETE(t.In(events)+"?fieldSelector=regarding.name%3Dz", nil).OK()
		t.GET(t.In(events) + "/" + o.Name()).OK()
		t.DELETE(t.In(events)+"?fieldSelector=regarding.name%3Da", nil).OK()
		t.GET(t.In(events) + "/" + o.Name()).Is(404)
	})
	s.Check("EV-09", "reportingComponent is accepted by the name that the specification has for it", func(t *T) {
		body := t.Event()
		delete(body, "reportingController")
		o := t.POST(t.In(events), body).OK().Obj()
		old := t.GET(t.In("events") + "/" + o.Name()).OK().Obj()
		t.Eq("reportingComponent in the core group", old.Str("reportingComponent"), "example.com/suite")
		delete(body, "reportingComponent")
		t.POST(t.In(events), body.Set("metadata.name", "without")).Status(422, "Invalid")
	}, PlatformOnly("the original calls it reportingController"))
}
