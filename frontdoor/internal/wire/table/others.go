package table

import (
	"cmp"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/wire/rawjson"
)

// firstTime returns the age of the first timestamp that is set.
func firstTime(stamps ...rawjson.Value) any {
	for _, s := range stamps {
		if t, ok := timestamp(s); ok {
			return t
		}
	}
	return unknown
}

func eventLastSeen(o *object) any {
	return firstTime(o.Get("series", "lastObservedTime"), o.Get("lastTimestamp"), o.Get("deprecatedLastTimestamp"),
		o.Get("eventTime"), o.Get("firstTimestamp"), o.Get("deprecatedFirstTimestamp"))
}

func eventFirstSeen(o *object) any {
	return firstTime(o.Get("firstTimestamp"), o.Get("deprecatedFirstTimestamp"), o.Get("eventTime"))
}

func eventObject(o *object) any {
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

func eventSource(o *object) any {
	source := o.Get("source")
	if !source.Exists() {
		source = o.Get("deprecatedSource")
	}
	component := cmp.Or(source.Get("component").String(), o.Get("reportingComponent").String(), o.Get("reportingController").String())
	if host := source.Get("host").String(); host != "" {
		component += ", " + host
	}
	return component
}

func eventCount(o *object) any {
	return max(1, o.Get("series", "count").Int(), o.Get("count").Int(), o.Get("deprecatedCount").Int())
}

func volumeStatus(o *object) any {
	if o.metadata.Get("deletionTimestamp").Exists() {
		return "Terminating"
	}
	return o.status.Get("phase").String()
}

func volumeClaim(o *object) any {
	claim := o.spec.Get("claimRef")
	if !claim.Exists() {
		return ""
	}
	return claim.Get("namespace").String() + "/" + claim.Get("name").String()
}

func volumeClass(o *object) any {
	older := o.metadata.Get("annotations", o.names.Qualified("volume.beta", "storage-class")).String()
	return cmp.Or(older, o.spec.Get("storageClassName").String())
}

func storageClassName(o *object) any {
	name := o.metadata.Get("name").String()
	for _, annotation := range []string{"storageclass", "storageclass.beta"} {
		if o.metadata.Get("annotations", o.names.Qualified(annotation, "is-default-class")).Is("true") {
			return name + " (default)"
		}
	}
	return name
}

func quotaRequests(o *object) any {
	return quota(o, func(name string) bool { return !strings.HasPrefix(name, "limits") })
}

func quotaLimits(o *object) any {
	return quota(o, func(name string) bool { return strings.HasPrefix(name, "limits") })
}

func quota(o *object, include func(string) bool) string {
	var lines []string
	for name, hard := range o.status.Get("hard").Members() {
		if include(name) {
			lines = append(lines, name+": "+cmp.Or(o.status.Get("used", name).Text(), "0")+"/"+hard.Text())
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// requestCondition sums up a certificate signing request.
func requestCondition(o *object) any {
	is := func(kind string) bool { return condition(o.status.Get("conditions"), kind).Exists() }
	var words []string
	switch {
	case is("Denied"):
		words = append(words, "Denied")
	case is("Approved"):
		words = append(words, "Approved")
	default:
		words = append(words, "Pending")
	}
	if is("Failed") {
		words = append(words, "Failed")
	}
	if o.status.Get("certificate").Text() != "" {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}

func roleReference(o *object) any {
	role := o.Get("roleRef")
	return role.Get("kind").String() + "/" + role.Get("name").String()
}

func subjects(kind string) func(*object) any {
	return func(o *object) any {
		return join(o.Get("subjects"), ", ", func(s rawjson.Value) string {
			if !s.Get("kind").Is(kind) {
				return ""
			}
			if namespace := s.Get("namespace").String(); namespace != "" {
				return namespace + "/" + s.Get("name").String()
			}
			return s.Get("name").String()
		})
	}
}

func owner(o *object) any {
	for reference := range o.metadata.Get("ownerReferences").Items() {
		if !reference.Get("controller").True() {
			continue
		}
		kind := reference.Get("kind").String()
		if group, _, ok := strings.Cut(reference.Get("apiVersion").String(), "/"); ok {
			kind += "." + group
		}
		return strings.ToLower(kind) + "/" + reference.Get("name").String()
	}
	return none
}

func configMapData(o *object) any {
	return int64(o.Get("data").Len() + o.Get("binaryData").Len())
}

func tokenAudiences(o *object) any {
	var audiences []string
	for request := range o.spec.Get("tokenRequests").Items() {
		audiences = append(audiences, request.Get("audience").String())
	}
	return strings.Join(audiences, ",")
}

// healthy returns the condition of a component; they stand at the top level.
func healthy(o *object) rawjson.Value { return condition(o.Get("conditions"), "Healthy") }

func componentStatus(o *object) any {
	switch healthy(o).Get("status").String() {
	case "True":
		return "Healthy"
	case "False":
		return "Unhealthy"
	}
	return "Unknown"
}

func componentText(member string) func(*object) any {
	return func(o *object) any { return healthy(o).Get(member).String() }
}

func flowSchemaMissing(o *object) any {
	return cmp.Or(condition(o.status.Get("conditions"), "Dangling").Get("status").String(), "?")
}

func apiServiceBackend(o *object) any {
	service := o.spec.Get("service")
	if !service.Exists() {
		return "Local"
	}
	return service.Get("namespace").String() + "/" + service.Get("name").String()
}

func apiServiceAvailable(o *object) any {
	available := condition(o.status.Get("conditions"), "Available")
	status := cmp.Or(available.Get("status").String(), "Unknown")
	if reason := available.Get("reason").String(); status != "True" && reason != "" {
		return status + " (" + reason + ")"
	}
	return status
}
