package events

import (
	"cmp"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// firstTime returns the first timestamp that is set, whose age is shown.
func firstTime(stamps ...rawjson.Value) any {
	for _, s := range stamps {
		if t, ok := cell.Timestamp(s); ok {
			return t
		}
	}
	return cell.Unknown
}

func showEventLastSeen(o *cell.Object) any {
	return firstTime(o.Get("series", "lastObservedTime"), o.Get("lastTimestamp"), o.Get("deprecatedLastTimestamp"),
		o.Get("eventTime"), o.Get("firstTimestamp"), o.Get("deprecatedFirstTimestamp"))
}

func showEventFirstSeen(o *cell.Object) any {
	return firstTime(o.Get("firstTimestamp"), o.Get("deprecatedFirstTimestamp"), o.Get("eventTime"))
}

func showEventObject(o *cell.Object) any {
	about := o.Get("involvedObject")
	if !about.Exists() {
		about = o.Get("regarding")
	}
	kind, name := strings.ToLower(about.Get("kind").String()), about.Get("name").String()
	if name == "" {
		return kind
	}
	return kind + "/" + name
}

func showEventSource(o *cell.Object) any {
	component, host := sourceOf(o)
	return at(component, host)
}

// showEventInstance is showEventSource of later releases, which also show the instance of a
// component.
func showEventInstance(o *cell.Object) any {
	component, host := sourceOf(o)
	return at(component, cmp.Or(host, o.Get("reportingInstance").String()))
}

func sourceOf(o *cell.Object) (component, host string) {
	source := o.Get("source")
	if !source.Exists() {
		source = o.Get("deprecatedSource")
	}
	return cmp.Or(source.Get("component").String(), o.Get("reportingComponent").String(), o.Get("reportingController").String()), source.Get("host").String()
}

func at(component, place string) string {
	if place == "" {
		return component
	}
	return component + ", " + place
}

func showEventCount(o *cell.Object) any {
	return max(1, o.Get("series", "count").Int(), o.Get("count").Int(), o.Get("deprecatedCount").Int())
}
